#!/usr/bin/env bash
# Trains ResNet-20 on CIFAR-10, dense and sparse, and a wider sparse network for as long as the dense
# one takes, and rewrites the part of docs/results.md about them.
# usage: scripts/convolution_results.sh CIFAR10_FOLDER [SEEDS]   (default seeds: "0"; some two hours each)
# Runs stay in runs/results, or where LACUNA_RESULTS_DIR says: finished ones are not made again, others resume.
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

variants='dense rigl90 static90 rigl80 wide'
commands() {
  local seed variant folder
  for seed in $seeds; do
    for variant in $variants; do
      folder=$results/cifar10-$variant-$seed
      if [ ! -e "$folder/summary.json" ] && compgen -G "$folder/checkpoints/*.h5" >/dev/null; then
        echo "OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder' --threads 1 --quiet"
      else
        run_command "$folder" "$(arguments "$variant")" "$data" "$seed"
      fi
    done
  done
}
run_all commands

# The mean over the seeds of a number of the summaries, times a factor.
mean() { # VARIANT NAME FACTOR FORMAT
  for seed in $seeds; do
    sed -n "s/^  \"$2\": \([0-9.e+]*\).*/\1/p" "$results/cifar10-$1-$seed/summary.json"
  done | awk -v factor="$3" -v format="$4" '{ sum += $1 } END { printf format, factor * sum / NR }'
}

row() { # VARIANT TEXT
  echo "| $2 | $(accuracy "$results/cifar10-$1-")| $(mean "$1" nnz 1e-3 %.0f) |" \
    "$(mean "$1" training_flops 1e-6 %.0f) | $(mean "$1" train_seconds 1 %.0f) |"
}

begin='## Convolutional networks'
earlier=$(sed "/^$begin\$/,\$d" docs/results.md)
{
  echo "$earlier"
  cat <<TEXT

$begin

Test accuracy on CIFAR-10 in percent after 30 epochs (the wider network: $wide_epochs), batch 128, SGD with a
cosine from 0.1 to 0, crops and flips; seeds $(echo $seeds | sed 's/ /, /g'). The images are the set's, but where they
were JPEG copies, as for the numbers here, networks trained elsewhere lose some ten points on them.
FLOPs are those of a training step's products, of one example; seconds those of training on one core.
Written by

    scripts/convolution_results.sh CIFAR10_FOLDER "$seeds"

| network | accuracy | thousand nonzeros | MFLOPs | seconds |
|---|---|---|---|---|
$(row dense "ResNet-20, dense ([cifar10_resnet20](../configs/cifar10_resnet20.yaml))")
$(row rigl80 "ResNet-20, RigL 80 % ([cifar10_resnet20_rigl80](../configs/cifar10_resnet20_rigl80.yaml))")
$(row rigl90 "ResNet-20, RigL 90 % ([cifar10_resnet20_rigl90](../configs/cifar10_resnet20_rigl90.yaml))")
$(row static90 "ResNet-20, static 90 % ([cifar10_resnet20_static90](../configs/cifar10_resnet20_static90.yaml))")
$(row wide "WRN-16-2, RigL 90 %, in the time of the dense ResNet-20 ([cifar10_wrn16_2_rigl90](../configs/cifar10_wrn16_2_rigl90.yaml), $wide_epochs epochs, uniform)")
TEXT
} >docs/results.md.new
mv docs/results.md.new docs/results.md
echo "written: docs/results.md"
