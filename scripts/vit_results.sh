#!/usr/bin/env bash
# Trains a small vision transformer on CIFAR-10, dense and sparse, and rewrites the part of
# docs/measurements/tables.md about it.
# usage: scripts/vit_results.sh CIFAR10_FOLDER [SEEDS [VARIANTS]]
# (defaults: "0" and "dense 2:4 rigl80"; about an hour per seed on two cores)
# Results of finished runs are in docs/measurements/vit_results.tsv, one line per run; a run is repeated only if its
# line is deleted. Folders of runs are kept in runs/results, or in LACUNA_RESULTS_DIR, and an interrupted run is
# resumed. LACUNA_RESULTS_EXTRA are more arguments of `lacuna train`, to try the script with a few steps.
set -euo pipefail
data=$(cd "${1:?usage: scripts/vit_results.sh CIFAR10_FOLDER [SEEDS [VARIANTS]]}" && pwd)
seeds=${2:-0}
variants=${3:-dense 2:4 rigl80}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/image_runs.sh

# The arguments of `lacuna train` for a variant.
arguments() {
  case $1 in
    dense) echo "configs/cifar10_vit.yaml ${LACUNA_RESULTS_EXTRA:-}" ;;
    2:4) echo "configs/cifar10_vit_2_4.yaml ${LACUNA_RESULTS_EXTRA:-}" ;;
    *) echo "configs/cifar10_vit_$1.yaml ${LACUNA_RESULTS_EXTRA:-}" ;;
  esac
}

prefix=vit
table=docs/measurements/vit_results.tsv
train_and_note
measure_steps

begin='## Vision transformers'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

A vision transformer with patches of 4 × 4 pixels, 6 layers of 128 features, 4 heads and an MLP of 256, on
CIFAR-10: test accuracy in percent after ten epochs, the mean over the seeds, with several of them also the lowest
and the highest in brackets.

FLOPs are those of a training step's products for one example, including attention. A step's time is the smallest of
five means over twenty steps, on $(nproc) threads of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1),
one run after the other on an otherwise idle machine; seconds are this time multiplied by the steps, without
evaluations. Written by

    scripts/vit_results.sh CIFAR10_FOLDER "$seeds"

| blocks | accuracy | seeds | thousand nonzeros | MFLOPs | ms per step | seconds |
|---|---|---|---|---|---|---|
$({
    row dense "dense ([cifar10_vit](../../configs/cifar10_vit.yaml))"
    row 2:4 "2:4, chosen at every step ([cifar10_vit_2_4](../../configs/cifar10_vit_2_4.yaml))"
    row rigl80 "RigL 80 % ([cifar10_vit_rigl80](../../configs/cifar10_vit_rigl80.yaml))"
  })
TEXT
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
