#!/usr/bin/env bash
# Trains MNIST with every algorithm, sparsity and seed, and rewrites the beginning of docs/measurements/tables.md, up to
# and including the section "Further algorithms". Other sections stay.
# usage: scripts/results.sh MNIST_FOLDER [SEEDS]      (default seeds: "0 1 2"; about 15 minutes)
# Finished runs are not repeated. Their folders are kept in runs/results, or in LACUNA_RESULTS_DIR.
set -euo pipefail
data=$(cd "${1:?usage: scripts/results.sh MNIST_FOLDER [SEEDS]}" && pwd)
seeds=${2:-0 1 2}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

hidden='param_filter: ["fc1.weight", "fc2.weight"]'
updates='update: {freq: 100, stop: 3517}'
drop='drop_fraction: {type: cosine, init: 0.3, half_period: 3517}'
sparsities='0.9 0.95 0.98'
main='static set rigl gmp'
further='srigl snip snfs saliency ste acdc'

# The arguments of `lacuna train` for an algorithm, a sparsity and a distribution.
arguments() {
  local rising="{type: polynomial, init: 0.0, final: $2, start: 0, end: 3500}"
  case $1 in
    dense) echo "configs/mnist_mlp_dense.yaml" ;;
    static) echo "configs/mnist_mlp_static90.yaml --set sparsity.sparsity=$2 --set sparsity.distribution=$3" ;;
    srigl) echo "configs/mnist_mlp_srigl.yaml --set sparsity.sparsity=$2" ;;
    set | rigl) echo "configs/mnist_mlp_$1.yaml --set sparsity.sparsity=$2 --set sparsity.distribution=$3" ;;
    gmp) echo "configs/mnist_mlp_gmp.yaml --set sparsity.sparsity.final=$2 --set sparsity.distribution=$3" ;;
    group | phases) echo "configs/mnist_mlp_$1.yaml" ;;
    snip) echo "configs/mnist_mlp_rigl.yaml --set 'sparsity={algorithm: snip, sparsity: $2, $hidden}'" ;;
    snfs) echo "configs/mnist_mlp_rigl.yaml --set 'sparsity={algorithm: snfs, sparsity: $2, $hidden, $drop, $updates}'" ;;
    saliency | ste) echo "configs/mnist_mlp_rigl.yaml --set 'sparsity={algorithm: $1, sparsity: $rising, $hidden, $updates}'" ;;
    acdc) echo "configs/mnist_mlp_rigl.yaml --set 'sparsity={algorithm: acdc, sparsity: $2, $hidden, update: {freq: 469, start: 469, stop: 3517}}'" ;;
  esac
}

# One line for each run that is missing; they run on one thread each, one on each core.
commands() {
  local seed
  run() {
    run_command "$results/$1-$2-$3-$4" "$(arguments "$1" "$2" "$3")" "$data" "$4"
  }
  for seed in $seeds; do
    run dense 0 uniform "$seed"
    run group 0 uniform "$seed"
    run phases 0 uniform "$seed"
    for sparsity in $sparsities; do
      for algorithm in $main $further; do run "$algorithm" "$sparsity" uniform "$seed"; done
      for algorithm in $main; do run "$algorithm" "$sparsity" erk "$seed"; done
    done
  done
}
run_all commands

table() { # DISTRIBUTION ALGORITHM...
  local distribution=$1
  shift
  echo "| algorithm | 90 % | 95 % | 98 % |"
  echo "|---|---|---|---|"
  for algorithm in "$@"; do
    printf '| %s |' "$algorithm"
    for sparsity in $sparsities; do printf ' %s|' "$(accuracy "$results/$algorithm-$sparsity-$distribution-")"; done
    echo
  done
}

# The sections of other scripts stay.
others=$([ ! -e docs/measurements/tables.md ] || awk '
  /^## / { keep = !/^## (The same sparsity in both|Erdős–Rényi–kernel distribution|Further algorithms)/ }
  keep' docs/measurements/tables.md)
seeds_text=$(echo $seeds | sed 's/ /, /g')
{
  cat <<TEXT
# Tables of results

Test accuracy on MNIST in percent: the mean of seeds $seeds_text, in brackets the lowest and the
highest. The network is an MLP 784-300-100-10, trained with batches of 128 and Adam for 10 epochs. The
learning rate is 2e-3 (dense: 1e-3) for seven epochs, then a tenth of it. The hidden layers are
sparse, the classifier is dense. Masks change every 100 steps until 75 % of the run, and the drop
fraction falls from 0.3 along a cosine. This part is written by

    scripts/results.sh MNIST_FOLDER

- Dense (configs/mnist_mlp_dense.yaml): $(accuracy "$results/dense-0-uniform-" | sed 's/ $//').
- RigL in the first hidden layer, static in the second (configs/mnist_mlp_group.yaml): $(accuracy "$results/group-0-uniform-" | sed 's/ $//').
- RigL at 95 %, then dense (configs/mnist_mlp_phases.yaml): $(accuracy "$results/phases-0-uniform-" | sed 's/ $//').

[Large networks](large.md) shows networks of millions of neurons.

## The same sparsity in both hidden layers (uniform)

$(table uniform $main)

## Erdős–Rényi–kernel distribution over the hidden layers (erk)

$(table erk $main)

## Further algorithms

SRigL gives each neuron the same number of inputs, or none (\`min_salient: 0.3\`). SNIP prunes once, and all weights
of the hidden layers compete. Saliency, straight-through (ste) and GMP follow the same cubic schedule.
AC/DC alternates each epoch until 75 % of the run.

$(table uniform $further)

$others
TEXT
} >docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
