#!/usr/bin/env bash
# Stops training processes at random moments (in five of eight cases by SIGKILL, otherwise by SIGTERM, SIGHUP or Ctrl-C)
# and resumes each run with one or two threads. The 31 variants cover every algorithm except srigl, dynamic and
# structured, all layouts, and networks of linear layers, convolutions and attention. The results of each run are
# compared, bit for bit, with those of an undisturbed run: checkpoints, files of masks, and metrics except for times.
# Prints a table at the end.
# usage: scripts/soak.sh [number of stops, default 1000] [seed of the moments, default: the time]
# LACUNA_BUILD_DIR is where to build (default: build/release). LACUNA_SOAK_ONLY: only variants whose names match this
# pattern. LACUNA_SOAK_PROGRAMS: a folder with lacuna and tests/compare_checkpoints that are already built.
# LACUNA_SOAK_PROCESSES, as "1 2 4": each start has a number of processes drawn from these (mpirun, on this machine), a
# signal goes to a random one of them, and the undisturbed run has one process; all numbers must divide 8.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stops=${1:-1000}
seed=${2:-$(date +%s)}

programs=${LACUNA_SOAK_PROGRAMS:-}
if [ -z "$programs" ]; then
  source scripts/build.sh
  configure -DLACUNA_BUILD_TESTS=ON
  build_targets lacuna_program compare_checkpoints
  programs=$build
fi
lacuna=$programs/lacuna
read -r -a processes <<< "${LACUNA_SOAK_PROCESSES:-}"
shards=()
if [ "${#processes[@]}" -gt 0 ]; then
  shards=(--set train.shards=8)
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true' EXIT
export OMP_WAIT_POLICY=passive LACUNA_CACHE_DIR=$work/cache
RANDOM=$((seed % 32768))

for i in $(seq 1 300); do
  echo "to be or not to be, that is question $((i * 7919 % 311)) and no other"
done > "$work/text.txt"
awk '{ print NR % 3 == 0, $0 }' "$work/text.txt" > "$work/labelled.txt"

# Models with their data; sections of sparsity stand with them in the list of variants.
mlp='data: {type: glyphs, train_size: 1500, test_size: 200, validation: 200}
model: [flatten, {type: linear, name: fc1, out_features: 96}, relu, {type: dropout, p: 0.2},
        {type: linear, name: fc2, out_features: 32}, relu, {type: linear, name: fc3, out_features: 10}]
optimizer: {type: adam, lr: 0.001}
train: {steps: 220, batch_size: 8, accumulate: 2, log_every: 7, eval_every: 50, tensorboard: true,
        checkpoint: {every: 9, keep_last: 3, keep_best: true}}'
conv='data: {type: colour_glyphs, train_size: 600, test_size: 100, validation: 100,
       augment: {crop: 2, mixup: 0.2}}
model: [{type: conv2d, name: conv1, out_channels: 8, kernel: 3, padding: 1}, {type: batch_norm, name: bn1},
        relu, {type: max_pool, kernel: 2}, {type: conv2d, name: conv2, out_channels: 16, kernel: 3},
        relu, global_average_pool, {type: linear, name: fc, out_features: 10}]
optimizer: {type: sgd, lr: 0.05, momentum: 0.9}
train: {steps: 80, batch_size: 8, log_every: 7, eval_every: 30,
        checkpoint: {every: 9, keep_last: 3, keep_best: true}}'
gpt="data: {type: text, path: $work/text.txt, tokenizer: characters, context: 16, validation: 0.1, test: 0.1}
model: {type: gpt2, n_layer: 2, n_head: 2, n_embd: 16, n_positions: 16}
optimizer: {type: adamw, lr: 0.01, weight_decay: 0.1, no_decay: [bias, norm], warmup: 3, clip_norm: 1.0}
train: {steps: 60, batch_size: 8, log_every: 7, eval_every: 30, checkpoint: {every: 9, keep_last: 3}}"
bert="data: {type: labelled_text, train: $work/labelled.txt, tokenizer: words, max_length: 12, validation: 40}
model: {type: bert, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2,
        intermediate_size: 32, max_position_embeddings: 12, pooling: mean}
optimizer: {type: adamw, lr: 0.01, warmup: 3}
train: {steps: 80, batch_size: 8, log_every: 7, eval_every: 30, checkpoint: {every: 9, keep_last: 3}}"

to='sparsity: {type: polynomial, init: 0.1, final: 0.8, start: 2, end: 180}'
names=() ; models=() ; sections=()
variant() { # NAME MODEL SECTION
  case $1 in ${LACUNA_SOAK_ONLY:-*}) ;; *) return ;; esac
  names+=("$1") models+=("$2") sections+=("$3")
}
inner='param_filter: ["*fc*.weight", "conv2.weight"]'
tokens='param_filter: ["*.weight"]'
variant mlp-none mlp 'null'
variant mlp-static mlp '{algorithm: static, sparsity: 0.8}'
variant mlp-static-csr mlp '{algorithm: static, sparsity: 0.8, layout: csr}'
variant mlp-static-masked mlp '{algorithm: static, sparsity: 0.8, layout: masked}'
variant mlp-static-nm mlp '{algorithm: static, pattern: {type: nm, n: 2, m: 4}, layout: nm, param_filter: [fc1.weight, fc2.weight]}'
variant mlp-set-csr mlp '{algorithm: set, sparsity: 0.8, layout: csr, update: {freq: 5}}'
variant mlp-rigl-csr mlp '{algorithm: rigl, sparsity: 0.8, layout: csr, update: {freq: 5}}'
variant mlp-rigl-masked mlp '{algorithm: rigl, sparsity: 0.8, layout: masked, update: {freq: 5}}'
variant mlp-rigl-block mlp '{algorithm: rigl, sparsity: 0.6, layout: block, update: {freq: 5}, pattern: {type: block, rows: 8, cols: 8}, param_filter: [fc1.weight]}'
variant mlp-snfs mlp '{algorithm: snfs, sparsity: 0.8, update: {freq: 5}}'
variant mlp-gmp mlp "{algorithm: gmp, update: {freq: 5}, $to}"
variant mlp-ste mlp "{algorithm: ste, update: {freq: 5}, $to}"
variant mlp-saliency mlp "{algorithm: saliency, update: {freq: 5}, $to}"
variant mlp-acdc mlp '{algorithm: acdc, sparsity: 0.8, update: {freq: 40}}'
variant mlp-snip mlp '{algorithm: snip, sparsity: 0.8}'
variant mlp-semi-sparse mlp '{algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, layout: nm, param_filter: [fc1.weight, fc2.weight]}'
variant mlp-magnitude mlp '{algorithm: magnitude, sparsity: 0.7}'
variant mlp-wanda mlp '{algorithm: wanda, sparsity: 0.6, calibration: 64}'
variant mlp-sparsegpt mlp '{algorithm: sparsegpt, sparsity: 0.6, calibration: 64, layout: csr}'
variant mlp-admm mlp '{algorithm: admm, sparsity: 0.6, calibration: 64, least_squares: true}'
variant mlp-group mlp '[{algorithm: snip, sparsity: 0.8, param_filter: fc1.weight}, {algorithm: ste, sparsity: 0.5, update: {freq: 5}, param_filter: fc2.weight}]'
variant mlp-phases mlp '{phases: [{until: 60, algorithm: static, sparsity: 0.6}, {until: 120, algorithm: ste, sparsity: 0.7, update: {freq: 4}}, {until: 170, algorithm: dense}, {algorithm: rigl, sparsity: 0.8, update: {freq: 4}}]}'
variant conv-none conv 'null'
variant conv-rigl-csr conv "{algorithm: rigl, sparsity: 0.7, layout: csr, update: {freq: 5}, $inner}"
variant conv-set-masked conv "{algorithm: set, sparsity: 0.7, layout: masked, update: {freq: 5}, $inner}"
variant conv-gmp conv "{algorithm: gmp, update: {freq: 5}, sparsity: {type: polynomial, init: 0.1, final: 0.7, start: 2, end: 60}, $inner}"
variant gpt-rigl-csr gpt '{algorithm: rigl, sparsity: 0.6, layout: csr, update: {freq: 5}}'
variant gpt-ste-masked gpt '{algorithm: ste, sparsity: 0.6, layout: masked, update: {freq: 5}}'
variant gpt-sparsegpt gpt '{algorithm: sparsegpt, sparsity: 0.5, calibration: 32}'
variant bert-set-csr bert '{algorithm: set, sparsity: 0.6, layout: csr, update: {freq: 5}, param_filter: ["bert.encoder.*.dense.weight"]}'
variant bert-nm bert '{algorithm: static, pattern: {type: nm, n: 2, m: 4}, layout: nm, param_filter: ["bert.encoder.*.dense.weight"]}'
count=${#names[@]}
[ "$count" -gt 0 ] || { echo "soak: no variant is called ${LACUNA_SOAK_ONLY}" >&2; exit 1; }

fail() { # WHAT; uses $name and $folder
  echo "soak: $name: $1; the run is in $folder, seed $seed" >&2
  tail -n 20 "$work/out" "$folder/run/log.txt" >&2 || true
  exit 1
}

# The events without what may differ: times, rates, and what processes tell each other.
events() {
  local differing='seconds|examples_per_second|bytes_sent|statistics_bytes_sent|wait_seconds'
  sed -E "s/, \"($differing)\": [^,}]*//g" "$1/metrics.jsonl"
}

# The last and the best checkpoint, those between that both have (a signal saves one of its own, which
# pushes out an older one), and the files of masks.
compare() {
  local file name_of_file
  cmp <(ls "$folder/whole/checkpoints" | tail -n 1) <(ls "$folder/run/checkpoints" | tail -n 1) ||
    fail "it has another last checkpoint"
  for file in "$folder/whole/checkpoints"/*.h5; do
    name_of_file=$(basename "$file")
    if [ ! -e "$folder/run/checkpoints/$name_of_file" ]; then
      [ "$name_of_file" != best.h5 ] || fail "best.h5 is missing"
      continue
    fi
    "$programs/tests/compare_checkpoints" "$file" "$folder/run/checkpoints/$name_of_file" ||
      fail "$name_of_file differs"
  done
  if [ -d "$folder/whole/masks" ]; then
    diff -r "$folder/whole/masks" "$folder/run/masks" || fail "the masks differ"
  fi
  cmp <(events "$folder/whole") <(events "$folder/run") || fail "the metrics differ"
}

milliseconds() { date +%s%3N; }

# Starts a run, by several processes where these are asked for; $pid is the program's or mpirun's.
start() { # OPTIONS
  local launch=()
  if [ "${#processes[@]}" -gt 0 ]; then
    launch=(mpirun -np "${processes[RANDOM % ${#processes[@]}]}" --oversubscribe --bind-to none
      --mca mpi_yield_when_idle 1)
  fi
  ${launch[@]+"${launch[@]}"} "$lacuna" train "$folder/config.yaml" "$@" > "$work/out" 2>&1 &
  pid=$!
}

# Sends a signal to a random one of the processes that there are by now.
send() { # SIGNAL
  local all=("$pid")
  if [ "${#processes[@]}" -gt 0 ]; then mapfile -t all < <(pgrep -P "$pid"); fi
  [ "${#all[@]}" -eq 0 ] || kill -s "$1" "${all[RANDOM % ${#all[@]}]}" 2> "$work/none" || true
}

# One run with its stops, from the beginning to the end.
soak() { # INDEX
  local code options began
  name=${names[$1]} folder=$work/${names[$1]}
  if [ ! -e "$folder/whole" ]; then
    mkdir -p "$folder"
    printf '%s\nsparsity: %s\n' "${!models[$1]}" "${sections[$1]}" > "$folder/config.yaml"
    began=$(milliseconds)
    "$lacuna" train "$folder/config.yaml" --run-dir "$folder/whole" --threads 1 --quiet \
      ${shards[@]+"${shards[@]}"} > "$work/out" 2>&1 || fail "it does not train"
    lasts[$1]=$(($(milliseconds) - began + 1))
    # A launcher takes part of a second, and more processes than cores take turns.
    if [ "${#processes[@]}" -gt 0 ]; then lasts[$1]=$((2 * ${lasts[$1]} + 1000)); fi
  fi
  while true; do
    options=(--run-dir "$folder/run" --quiet)
    # The first process chooses layouts, by what products cost with its threads; the run keeps them.
    if [ -e "$folder/run/config.yaml" ]; then
      options+=(--resume --threads $((1 + RANDOM % 2)))
    else
      options+=(--threads 1)
    fi
    start "${options[@]}"
    if [ "$stopped" -lt "$stops" ]; then
      signals=(KILL KILL KILL KILL KILL TERM INT HUP)
      moment=$(((RANDOM * 32768 + RANDOM) % lasts[$1]))
      sleep "$((moment / 1000)).$(printf '%03d' $((moment % 1000)))"
      send "${signals[RANDOM % 8]}"
    fi
    code=0
    { wait "$pid" || code=$?; } 2> "$work/none"
    pid=
    case $code in
      129 | 130 | 137 | 143) stopped=$((stopped + 1)) stops_of[$1]=$((stops_of[$1] + 1)) ;;
      0) break ;;
      *) fail "exit code $code" ;;
    esac
  done
  compare
  ended=$((ended + 1)) ended_of[$1]=$((ended_of[$1] + 1))
  rm -rf "$folder/run"
}

echo "soak: seed $seed, $count variants, in $work"
stopped=0 ended=0
lasts=() stops_of=() ended_of=()
for ((i = 0; i < count; ++i)); do lasts+=(0) stops_of+=(0) ended_of+=(0); done
rounds=0
while [ "$stopped" -lt "$stops" ]; do
  for ((i = 0; i < count && stopped < stops; ++i)); do soak "$i"; done
  rounds=$((rounds + 1))
  echo "soak: round $rounds, $stopped stops, $ended runs to the end" >&2
done
rm -rf "$work"
printf '%-20s %6s %12s\n' variant stops 'runs to end'
for ((i = 0; i < count; ++i)); do
  printf '%-20s %6d %12d\n' "${names[i]}" "${stops_of[i]}" "${ended_of[i]}"
done
echo "soak: $stopped stops, $ended runs to the end; all ended as the one that was left alone"
