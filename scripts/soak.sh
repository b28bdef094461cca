#!/usr/bin/env bash
# Stops a training process at random moments, most often with SIGKILL, else with SIGTERM or Ctrl-C,
# resumes it each time, with one thread or two, and compares how it ends, bit for bit, with a run
# that was left alone. A run that ends is followed by another until all stops are done.
# usage: scripts/soak.sh [number of stops, default 100] [seed of the moments, default: the time]
# LACUNA_BUILD_DIR is where to build (default: build/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/build.sh
stops=${1:-100}
seed=${2:-$(date +%s)}

scripts/install_dependencies.sh --tests
configure -DLACUNA_BUILD_TESTS=ON
build_targets lacuna_program compare_checkpoints
lacuna=$build/lacuna
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true' EXIT
export OMP_WAIT_POLICY=passive
RANDOM=$((seed % 32768))

cat > "$work/config.yaml" <<'END'
data: {type: glyphs, train_size: 3000, test_size: 300, validation: 300}
model:
  - flatten
  - {type: linear, name: fc1, out_features: 200}
  - relu
  - {type: dropout, p: 0.2}
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.001}
sparsity: {sparsity: 0.8, param_filter: fc1.weight}
train:
  epochs: 12
  batch_size: 8
  accumulate: 2
  log_every: 7
  eval_every: 50
  checkpoint: {every: 9, keep_last: 2, keep_best: true}
END

fail() {
  echo "soak: $1; the run is in $work/run" >&2
  tail -n 20 "$work/out" "$work/run/log.txt" >&2 || true
  exit 1
}

# The events without what may differ: times and rates.
events() {
  sed -E 's/, "(seconds|examples_per_second)": [^,}]*//g' "$1/metrics.jsonl"
}

compare() {
  local name
  for name in "$work"/whole/checkpoints/*.h5; do
    "$build/tests/compare_checkpoints" "$name" "$work/run/checkpoints/$(basename "$name")" ||
      fail "$(basename "$name") differs"
  done
  cmp <(events "$work/whole") <(events "$work/run") || fail "the metrics differ"
}

echo "soak: seed $seed, in $work"
"$lacuna" train "$work/config.yaml" --run-dir "$work/whole" --threads 1 --quiet
ended=0
stopped=0
while true; do
  options=(--run-dir "$work/run" --threads $((1 + RANDOM % 2)) --quiet)
  if [ -e "$work/run/config.yaml" ]; then options+=(--resume); fi
  "$lacuna" train "$work/config.yaml" "${options[@]}" > "$work/out" 2>&1 &
  pid=$!
  if [ "$stopped" -lt "$stops" ]; then
    signals=(KILL KILL KILL KILL TERM INT)
    sleep "0.$(printf '%03d' $((RANDOM % 700)))"
    kill -s "${signals[RANDOM % 6]}" "$pid" 2> "$work/none" || true
  fi
  code=0
  { wait "$pid" || code=$?; } 2> "$work/none"
  pid=
  case $code in
    130 | 137 | 143) stopped=$((stopped + 1)) ;;
    0)
      compare
      ended=$((ended + 1))
      rm -rf "$work/run"
      if [ "$stopped" -ge "$stops" ]; then break; fi
      ;;
    *) fail "exit code $code" ;;
  esac
done
rm -rf "$work"
echo "soak: $stopped stops, $ended runs to the end; all ended as the one that was left alone"
