#!/usr/bin/env bash
# Trains with RigL in groups of 1 × 4 and without a pattern, at 80 and 90 %: an MLP on MNIST, ResNet-20 on 10,000
# images of CIFAR-10, a GPT on Tiny Shakespeare; then rewrites the part of docs/measurements/tables.md about them.
# usage: scripts/group_results.sh DATA_FOLDER [SEEDS]     (default seeds: "0 1 2"; an hour on one core)
# DATA_FOLDER holds mnist/, cifar-10-batches-bin/ and text/tinyshakespeare.txt. Runs that are in
# docs/measurements/group_results.tsv are not repeated; GROUP_NETWORKS selects networks, as "mlp gpt".
set -euo pipefail
folder=$(cd "${1:?usage: scripts/group_results.sh DATA_FOLDER [SEEDS]}" && pwd)
seeds=${2:-0 1 2}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
prefix=groups
table=docs/measurements/group_results.tsv
begin='## Groups of 1×4'
networks=${GROUP_NETWORKS:-mlp gpt resnet20}
patterns='1x4 none'

arguments() { # VARIANT, as gpt-80-1x4
  local network sparsity pattern
  IFS=- read -r network sparsity pattern <<<"$1"
  local sparse="--set sparsity.sparsity=0.$sparsity"
  [ "$pattern" = none ] || sparse+=" --set 'sparsity.pattern={type: block, rows: 1, cols: 4}'"
  case $network in
    mlp) echo "configs/mnist_mlp_rigl.yaml $sparse --set 'data.dir=$folder/mnist'" ;;
    gpt) echo "configs/shakespeare_gpt_mini_rigl80.yaml $sparse --set 'data.path=$folder/text/tinyshakespeare.txt'" ;;
    resnet20)
      # 20 epochs of 78 steps; the schedules of the configuration over them.
      echo "configs/cifar10_resnet20_sparse.yaml $sparse --set 'data.dir=$folder' --set data.limit=10000 \
        --set train.epochs=20 --set 'train.eval_every=20 epochs' --set sparsity.update.stop=1170 \
        --set sparsity.update.freq=50 --set sparsity.drop_fraction.half_period=1170 --set optimizer.lr.half_period=1560"
      ;;
  esac
}
source scripts/training_runs.sh

missing_runs() { # VARIANT and seed a line
  local network sparsity pattern seed
  for network in $networks; do
    for seed in $seeds; do
      for sparsity in 80 90; do
        for pattern in $patterns; do
          is_known "$table" "$network-$sparsity-$pattern" "$seed" || echo "$network-$sparsity-$pattern $seed"
        done
      done
    done
  done
}
commands() {
  local variant seed
  while read -r variant seed; do
    run="$results/$prefix-$variant-$seed"
    [ -e "$run/summary.json" ] ||
      echo "rm -rf '$run'; OMP_NUM_THREADS=1 '$program' train $(arguments "$variant") --seed $seed --threads 1 --run-dir '$run' --quiet"
  done < <(missing_runs)
}
run_all commands

[ -e "$table" ] || printf 'variant\tseed\tvalue\tnnz\tsteps\n' >"$table"
number() { # FOLDER NAME
  sed -n "s/^  \"$2\": \([0-9.e+-]*\).*/\1/p" "$1/summary.json"
}
while read -r variant seed; do
  run="$results/$prefix-$variant-$seed"
  [ -e "$run/summary.json" ] || continue
  of=test_accuracy
  [[ $variant == gpt-* ]] && of=validation_loss
  printf '%s\t%s\t%s\t%s\t%s\n' "$variant" "$seed" "$(number "$run" $of)" "$(number "$run" nnz)" "$(number "$run" steps)" >>"$table"
done < <(missing_runs)

# Mean, least and largest over the seeds, and how many; accuracies in percent.
cell() { # VARIANT FACTOR DIGITS
  awk -F '\t' -v variant="$1" -v factor="$2" -v digits="$3" '
    $1 == variant { x = factor * $3; sum += x; n++; if (n == 1 || x < low) low = x; if (n == 1 || x > high) high = x }
    END { format = "%." digits "f"
          if (n == 0) { print "–"; exit }
          printf format " (" format "–" format ", %d)", sum / n, low, high, n }' "$table"
}
rows() { # NETWORK TEXT FACTOR DIGITS
  local sparsity
  for sparsity in 80 90; do
    grep -q "^$1-$sparsity-" "$table" || continue
    echo "| $2 | $sparsity % | $(cell "$1-$sparsity-1x4" "$3" "$4") | $(cell "$1-$sparsity-none" "$3" "$4") |"
  done
}
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

RigL in groups of 1 × 4, the unit of the int8 kernels ([quantization](../guides/quantization.md)), next to RigL without
a pattern; mean, in brackets the lowest, the highest and the number of seeds. This part is written by

    scripts/group_results.sh DATA_FOLDER

| network | sparsity | groups of 1 × 4 | unstructured |
|---|---|---|---|
$(
  rows mlp "MLP 784-300-100-10, MNIST, 10 epochs ([mnist_mlp_rigl](../../configs/mnist_mlp_rigl.yaml)): accuracy, %" 100 2
  rows resnet20 "ResNet-20, 10,000 images of CIFAR-10, 20 epochs ([cifar10_resnet20_sparse](../../configs/cifar10_resnet20_sparse.yaml)): accuracy, %" 100 2
  rows gpt "GPT 4×128, Tiny Shakespeare, 2,000 steps ([shakespeare_gpt_mini_rigl80](../../configs/shakespeare_gpt_mini_rigl80.yaml)): loss" 1 3
)
TEXT
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
