#!/usr/bin/env bash
# Trains the MLP of docs/measurements/tables.md on MNIST, dense and at several sparsities, for README's picture. Writes
# docs/measurements/sparsity_results.tsv, from which bench/peers then draws the picture.
# usage: scripts/sparsity_results.sh MNIST_FOLDER [SEEDS]     (default seeds: "0 1 2"; about 5 minutes)
# A run that is in the table is repeated only if its line is deleted.
set -euo pipefail
data=$(cd "${1:?usage: scripts/sparsity_results.sh MNIST_FOLDER [SEEDS]}" && pwd)
seeds=${2:-0 1 2}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
prefix=sparsity
table=docs/measurements/sparsity_results.tsv
variants='dense-0 rigl-80 rigl-90 rigl-95 rigl-98 gmp-80 gmp-90 gmp-95 gmp-98'

arguments() { # VARIANT
  case $1 in
    dense-*) echo "configs/mnist_mlp_dense.yaml" ;;
    rigl-*) echo "configs/mnist_mlp_rigl.yaml --set sparsity.sparsity=0.${1#*-}" ;;
    gmp-*) echo "configs/mnist_mlp_gmp.yaml --set sparsity.sparsity.final=0.${1#*-}" ;;
  esac
}
source scripts/image_runs.sh
train_and_note
scripts/peers.sh --draw
