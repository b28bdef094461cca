#!/usr/bin/env bash
# Trains ResNet-20 on CIFAR-10, dense and sparse, and a wider sparse network for as long as the dense
# one takes, and rewrites the part of docs/results.md about them.
# usage: scripts/convolution_results.sh CIFAR10_FOLDER [SEEDS [VARIANTS]]
# (defaults: "0" and "dense rigl90 static90 rigl80 wide"; some two hours a seed on two cores)
# What came of finished runs stands in docs/convolution_results.tsv, a line a run: they are not made
# again unless their line is deleted. Runs stay in runs/results, or where LACUNA_RESULTS_DIR says, and
# one that was interrupted resumes.
set -euo pipefail
data=$(cd "${1:?usage: scripts/convolution_results.sh CIFAR10_FOLDER [SEEDS]}" && pwd)
seeds=${2:-0}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

# The wider network trains for fewer epochs, with all its schedules as long as these: a step of it takes
# as much longer than one of the dense ResNet-20.
wide_epochs=24
wide_steps=$((391 * wide_epochs))

# The arguments of `lacuna train` for a variant.
arguments() {
  local wide_end=$((wide_steps * 3 / 4))
  case $1 in
    dense) echo "configs/cifar10_resnet20.yaml" ;;
    wide) echo "configs/cifar10_wrn16_2_rigl90.yaml --set train.epochs=$wide_epochs" \
      "--set optimizer.lr.half_period=$wide_steps --set sparsity.update.stop=$wide_end" \
      "--set sparsity.drop_fraction.half_period=$wide_end --set sparsity.distribution=uniform" ;;
    *) echo "configs/cifar10_resnet20_$1.yaml" ;;
  esac
}

table=docs/convolution_results.tsv
variants=${3:-dense rigl90 static90 rigl80 wide}
is_known() { # VARIANT SEED
  [ -e "$table" ] && grep -q "^$1	$2	" "$table"
}
commands() {
  local seed variant folder
  for seed in $seeds; do
    for variant in $variants; do
      folder=$results/cifar10-$variant-$seed
      if is_known "$variant" "$seed"; then
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
value() { # VARIANT SEED NAME
  sed -n "s/^  \"$3\": \([0-9.e+-]*\).*/\1/p" "$results/cifar10-$1-$2/summary.json"
}
for seed in $seeds; do
  for variant in $variants; do
    is_known "$variant" "$seed" && continue
    printf '%s\t%s' "$variant" "$seed" >>"$table"
    for name in test_accuracy nnz training_flops steps; do
      printf '\t%s' "$(value "$variant" "$seed" "$name")" >>"$table"
    done
    echo >>"$table"
  done
done

# Milliseconds of a training step, one run after the other with the machine to itself: all the runs of
# the table side by side, whenever and wherever they were made.
declare -A step_ms
for variant in $(cut -f 1 "$table" | sed 1d | sort -u); do
  step_ms[$variant]=$(step_milliseconds "$results/cifar10-$variant-timing" \
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

begin='## Convolutional networks'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

Test accuracy on CIFAR-10 in percent after 30 epochs (the wider network: $wide_epochs), batch 128, SGD with
Nesterov's momentum and a cosine from 0.1 to 0, weight decay 5e-4, crops and flips: the mean over the seeds, in brackets the lowest and the highest.
The images are JPEG copies of the set's, on which networks trained elsewhere lose some ten points.
FLOPs are those of a training step's products, of one example. A step's time is the least of five times
twenty steps, on $(nproc) threads of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), one run after the other
with the machine to itself; seconds are that times the steps, evaluations not counted. Written by

    scripts/convolution_results.sh CIFAR10_FOLDER "0 1 2"

| network | accuracy | seeds | thousand nonzeros | MFLOPs | ms a step | seconds |
|---|---|---|---|---|---|---|
$({
    row dense "ResNet-20, dense ([cifar10_resnet20](../configs/cifar10_resnet20.yaml))"
    row rigl80 "ResNet-20, RigL 80 % ([cifar10_resnet20_rigl80](../configs/cifar10_resnet20_rigl80.yaml))"
    row rigl90 "ResNet-20, RigL 90 % ([cifar10_resnet20_rigl90](../configs/cifar10_resnet20_rigl90.yaml))"
    row static90 "ResNet-20, static 90 % ([cifar10_resnet20_static90](../configs/cifar10_resnet20_static90.yaml))"
    row wide "WRN-16-2, RigL 90 %, in the time of the dense ResNet-20 ([cifar10_wrn16_2_rigl90](../configs/cifar10_wrn16_2_rigl90.yaml), $wide_epochs epochs, uniform)"
  })
TEXT
} >docs/results.md.new
mv docs/results.md.new docs/results.md
echo "written: docs/results.md"
