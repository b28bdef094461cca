#!/usr/bin/env bash
# Trains a small vision transformer on CIFAR-10, dense and sparse, and rewrites the part of
# docs/results.md about it.
# usage: scripts/vit_results.sh CIFAR10_FOLDER [SEEDS [VARIANTS]]
# (defaults: "0" and "dense 2:4 rigl80"; some half an hour a seed on two cores)
# What came of finished runs stands in docs/vit_results.tsv, a line a run: they are not made again unless
# their line is deleted. Runs stay in runs/results, or where LACUNA_RESULTS_DIR says, and one that was
# interrupted resumes. LACUNA_RESULTS_EXTRA are more arguments of `lacuna train`, to try the script with
# a few steps.
set -euo pipefail
data=$(cd "${1:?usage: scripts/vit_results.sh CIFAR10_FOLDER [SEEDS [VARIANTS]]}" && pwd)
seeds=${2:-0}
variants=${3:-dense 2:4 rigl80}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

# The arguments of `lacuna train` for a variant.
arguments() {
  case $1 in
    dense) echo "configs/cifar10_vit.yaml ${LACUNA_RESULTS_EXTRA:-}" ;;
    2:4) echo "configs/cifar10_vit_2_4.yaml ${LACUNA_RESULTS_EXTRA:-}" ;;
    *) echo "configs/cifar10_vit_$1.yaml ${LACUNA_RESULTS_EXTRA:-}" ;;
  esac
}

table=docs/vit_results.tsv
commands() {
  local seed variant folder
  for seed in $seeds; do
    for variant in $variants; do
      folder=$results/vit-$variant-$seed
      if is_known "$table" "$variant" "$seed"; then
        continue
      elif [ ! -e "$folder/summary.json" ] && compgen -G "$folder/checkpoints/*.h5" >/dev/null; then
        echo "OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder' --threads 1 --quiet"
      else
        run_command "$folder" "$(arguments "$variant")" "$data" "$seed"
      fi
    done
  done
}
run_all commands

# The new runs' lines: variant, seed, accuracy, nonzeros, FLOPs of a step for one example, steps.
[ -e "$table" ] || printf 'variant\tseed\ttest_accuracy\tnnz\ttraining_flops\tsteps\n' >"$table"
for seed in $seeds; do
  for variant in $variants; do
    is_known "$table" "$variant" "$seed" && continue
    line="$variant	$seed"
    for name in test_accuracy nnz training_flops steps; do
      line+="	$(sed -n "s/^  \"$name\": \([0-9.e+-]*\).*/\1/p" "$results/vit-$variant-$seed/summary.json")"
    done
    echo "$line" >>"$table"
  done
done

# Milliseconds of a training step, one run after the other with the machine to itself.
declare -A step_ms
for variant in $(cut -f 1 "$table" | sed 1d | sort -u); do
  step_ms[$variant]=$(step_milliseconds "$results/vit-$variant-timing" \
    "$(arguments "$variant") --set 'data.dir=$data'")
done

# A variant's line: means over all its seeds, of the accuracy the lowest and the highest besides.
row() { # VARIANT TEXT
  if [ -z "${step_ms[$1]:-}" ]; then return; fi
  awk -F '\t' -v variant="$1" -v text="$2" -v step_ms="${step_ms[$1]}" '
    $1 == variant {
      x = 100 * $3; n++; accuracy += x; nnz += $4; flops += $5; steps = $6
      if (n == 1 || x < low) low = x
      if (x > high) high = x
    }
    END {
      spread = n > 1 ? sprintf(" (%.2f–%.2f)", low, high) : ""
      printf "| %s | %.2f%s | %d | %.0f | %.0f | %.0f | %.0f |\n", text, accuracy / n, spread, n,
             nnz / n / 1e3, flops / n / 1e6, step_ms, step_ms * steps / 1000
    }' "$table"
}

begin='## Vision transformers'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

A vision transformer with patches of 4 × 4 pixels, 6 layers of 128 features, 4 heads and an MLP of 256, on
CIFAR-10: test accuracy in percent after ten epochs, the mean over the seeds, in brackets the lowest and the
highest. FLOPs are those of a training step's products for one example, attention's among them. A step's time is
the least of five times twenty steps, on $(nproc) threads of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1),
one run after the other with the machine to itself; seconds are that times the steps, evaluations not counted.
Written by

    scripts/vit_results.sh CIFAR10_FOLDER "0 1 2"

| blocks | accuracy | seeds | thousand nonzeros | MFLOPs | ms a step | seconds |
|---|---|---|---|---|---|---|
$({
    row dense "dense ([cifar10_vit](../configs/cifar10_vit.yaml))"
    row 2:4 "2:4, chosen at every step ([cifar10_vit_2_4](../configs/cifar10_vit_2_4.yaml))"
    row rigl80 "RigL 80 % ([cifar10_vit_rigl80](../configs/cifar10_vit_rigl80.yaml))"
  })
TEXT
} >docs/results.md.new
mv docs/results.md.new docs/results.md
echo "written: docs/results.md"
