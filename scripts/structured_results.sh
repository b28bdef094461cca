#!/usr/bin/env bash
# Trains MNIST with structured patterns, and rewrites the part of docs/measurements/tables.md about them.
# usage: scripts/structured_results.sh MNIST_FOLDER [SEEDS]     (default seeds: "0 1 2"; some five minutes)
# Finished runs are not repeated. Their folders are kept in runs/results, or in LACUNA_RESULTS_DIR.
set -euo pipefail
data=$(cd "${1:?usage: scripts/structured_results.sh MNIST_FOLDER [SEEDS]}" && pwd)
seeds=${2:-0 1 2}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

hidden='param_filter: ["fc1.weight", "fc2.weight"]'
nm='type: nm, n: 2, m: 4'
semi="algorithm: semi_sparse, $hidden, pattern"
semi_config=configs/mnist_mlp_semi_sparse.yaml
steps=4690

# The arguments of `lacuna train` for a variant.
arguments() {
  local config=configs/mnist_mlp_2_4.yaml
  case $1 in
    static-2:4) echo "$config" ;;
    static-2:4-random) echo "$config --set sparsity.init_method=random" ;;
    static-2:4-exact) echo "$config --set 'sparsity.pattern={$nm, transposable: true}'" ;;
    static-1:4) echo "$config --set 'sparsity.pattern={type: nm, n: 1, m: 4}'" ;;
    static-2:4-g4) echo "$config --set 'sparsity.pattern={$nm, group: 4}'" ;;
    set-2:4 | rigl-2:4) echo "$config --set 'sparsity={algorithm: ${1%-*}, $hidden, pattern: {$nm}, update: {freq: 100, stop: 3517}}'" ;;
    gmp-2:4) echo "$config --set 'sparsity={algorithm: gmp, $hidden, pattern: {$nm}, update: {freq: 100, stop: 3517}, sparsity: {type: polynomial, init: 0.0, final: 0.5, start: 0, end: 3500}}'" ;;
    semi-2:4) echo "$semi_config --set 'sparsity={$semi: {$nm}}'" ;;
    semi-2:4-decay) echo "$semi_config --set 'sparsity={$semi: {$nm}, decay: 0.0002}'" ;;
    semi-2:4-exact) echo "$semi_config --set 'sparsity={$semi: {$nm, transposable: true}, every: 10}'" ;;
    rigl-4x4) echo "configs/mnist_mlp_block.yaml" ;;
    rigl-1x1) echo "configs/mnist_mlp_rigl.yaml" ;;
    activation-2:4) echo "configs/mnist_mlp_dense.yaml --set 'sparsifiers=[{tensor: \"relu*.output\", sparsifier: {$nm}}]'" ;;
    units-*) echo "configs/mnist_mlp_dense.yaml --set 'sparsity={algorithm: structured, to: {flops: 0.${1##*-0.}}, criterion: $(cut -d- -f2 <<<"$1"), update: {freq: 5 %, stop: 50 %}}'" ;;
    share-0) echo "$semi_config --set 'sparsity={algorithm: dense, $hidden}'" ;;
    share-100) arguments semi-2:4 ;;
    share-*) echo "$semi_config --set sparsity.phases.0.until=$((steps * ${1#share-} / 100))" ;;
  esac
}

plain='static-2:4 static-2:4-random static-1:4 static-2:4-g4 set-2:4 rigl-2:4 gmp-2:4 semi-2:4 semi-2:4-decay activation-2:4 rigl-4x4 rigl-1x1'
transposable='static-2:4-exact semi-2:4-exact'
shares='0 40 60 80 100'
criteria='magnitude saliency error'
parts='0.3 0.1'
variants="$plain $transposable $(for s in $shares; do echo "share-$s"; done)
  $(for part in $parts; do for c in $criteria; do echo "units-$c-$part"; done; done)"
commands() {
  for seed in $seeds; do
    for variant in $variants; do
      run_command "$results/structured-$variant-$seed" "$(arguments "$variant")" "$data" "$seed"
    done
  done
}
run_all commands

row() { echo "| $2 | $(accuracy "$results/structured-$1-")|"; }
begin='## Structured patterns'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

The MLP of the first tables on MNIST, seeds $(echo $seeds | sed 's/ /, /g'); the hidden layers
have a pattern. The learning rate is 2e-3 for seven epochs, then a tenth of it. With SemiSparse, with 2:4 activations
and for masked units it is 1e-3, as in the dense network. SemiSparse starts from \`init: kaiming_uniform\`; its row of 0 %
sparse steps is the dense network with these initial values. This part is written by

    scripts/structured_results.sh MNIST_FOLDER

| hidden layers | accuracy |
|---|---|
$(row static-2:4 "static 2:4, the largest initial weights ([mnist_mlp_2_4](../../configs/mnist_mlp_2_4.yaml))")
$(row static-2:4-random "static 2:4, random")
$(row static-2:4-g4 "static 2:4, 4 rows share a pattern")
$(row static-1:4 "static 1:4")
$(row set-2:4 "SET 2:4")
$(row rigl-2:4 "RigL 2:4")
$(row gmp-2:4 "GMP 2:4")
$(row semi-2:4 "SemiSparse 2:4, chosen at every step")
$(row semi-2:4-decay "SemiSparse 2:4, SR-STE (decay 0.0002)")
$(row activation-2:4 "dense weights, 2:4 activations after ReLU")
$(row rigl-4x4 "RigL 90 %, blocks of 4×4 ([mnist_mlp_block](../../configs/mnist_mlp_block.yaml))")
$(row rigl-1x1 "RigL 90 %, unstructured")

### Transposable 2:4

The pattern is the best of a tile's 90 patterns.

| hidden layers | accuracy |
|---|---|
$(row static-2:4-exact "static")
$(row semi-2:4-exact "SemiSparse, chosen every 10 steps")

### Semi-sparse at first, dense for the rest

SemiSparse 2:4 for a share of the steps, then the dense master weights
([mnist_mlp_semi_sparse](../../configs/mnist_mlp_semi_sparse.yaml)):

| sparse steps | accuracy |
|---|---|
$(for s in $shares; do row "share-$s" "$s %"; done)

### Units masked while the network trains

\`structured\` masks units of the dense network ([mnist_mlp_dense](../../configs/mnist_mlp_dense.yaml)) in the first half
of the training, every 5 %. \`lacuna shrink --method dead\` removes them with the same outputs.

| FLOPs that remain | criterion | accuracy |
|---|---|---|
$(for part in $parts; do for c in $criteria; do row "units-$c-$part" "$part | \`$c\`"; done; done)
TEXT
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
