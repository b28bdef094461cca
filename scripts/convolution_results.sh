#!/usr/bin/env bash
# Trains ResNet-20 on CIFAR-10, dense and sparse, and a wider sparse network for as long as the dense
# one takes, and rewrites the part of docs/measurements/tables.md about them.
# usage: scripts/convolution_results.sh CIFAR10_FOLDER [SEEDS [VARIANTS]]
# (defaults: "0" and "dense rigl90 static90 rigl80 wide"; some two hours a seed on two cores)
# Results of finished runs are in docs/measurements/convolution_results.tsv, one line per run; a run is repeated only if
# its line is deleted. Folders of runs are kept in runs/results, or in LACUNA_RESULTS_DIR, and an interrupted run is
# resumed.
set -euo pipefail
data=$(cd "${1:?usage: scripts/convolution_results.sh CIFAR10_FOLDER [SEEDS]}" && pwd)
seeds=${2:-0}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/image_runs.sh

# The arguments of `lacuna train` for a variant.
arguments() {
  case $1 in
    dense) echo "configs/cifar10_resnet20.yaml" ;;
    wide) echo "configs/cifar10_wrn16_2_rigl90.yaml" ;;
    rigl90) echo "configs/cifar10_resnet20_sparse.yaml" ;;
    rigl80) echo "configs/cifar10_resnet20_sparse.yaml --set sparsity.sparsity=0.8" \
      "--set sparsity.distribution=erk" ;;
    static90) echo "configs/cifar10_resnet20_sparse.yaml --set" \
      "'sparsity={algorithm: static, sparsity: 0.9, param_filter: \"layer*.conv*.weight\"}'" ;;
    *) echo "$0: no variant $1" >&2; exit 1 ;;
  esac
}

prefix=cifar10
table=docs/measurements/convolution_results.tsv
variants=${3:-dense rigl90 static90 rigl80 wide}
train_and_note
measure_steps

begin='## Convolutional networks'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

Test accuracy on CIFAR-10 in percent after 30 epochs (the wider network: 24): the mean over the seeds, with
several of them also the lowest and the highest in brackets. Training: batches of 128, SGD with Nesterov's momentum, a
learning rate from 0.1 along a cosine to 0, weight decay 1e-3, label smoothing 0.1, crops and flips.
With a weight decay of 5e-4 and without label smoothing, seed 0, the dense network has 86.50 % and RigL at 80 %
84.67 %.

The images are JPEG copies of the original ones; networks trained on the originals lose about ten points on them. FLOPs
are those of a training step's products for one example. A step's time is the smallest of five means over twenty steps,
on $(nproc) threads of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), one run after the other
on an otherwise idle machine; seconds are this time multiplied by the steps, without evaluations. Written by

    scripts/convolution_results.sh CIFAR10_FOLDER "$seeds"

| network | accuracy | seeds | thousand nonzeros | MFLOPs | ms per step | seconds |
|---|---|---|---|---|---|---|
$({
    row dense "ResNet-20, dense ([cifar10_resnet20](../../configs/cifar10_resnet20.yaml))"
    row rigl80 "ResNet-20, RigL 80 %, erk ([cifar10_resnet20_sparse](../../configs/cifar10_resnet20_sparse.yaml))"
    row rigl90 "ResNet-20, RigL 90 %, uniform ([cifar10_resnet20_sparse](../../configs/cifar10_resnet20_sparse.yaml))"
    row static90 "ResNet-20, static 90 %, uniform ([cifar10_resnet20_sparse](../../configs/cifar10_resnet20_sparse.yaml))"
    row wide "WRN-16-2, RigL 90 %, 24 epochs, uniform ([cifar10_wrn16_2_rigl90](../../configs/cifar10_wrn16_2_rigl90.yaml))"
  })
TEXT
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
