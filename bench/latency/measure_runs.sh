#!/usr/bin/env bash
# Test: trains an MLP and a GPT for a few steps, quantizes them, and measures them by bench_latency --run.
# usage: measure_runs.sh LACUNA BENCH_LATENCY SOURCE_FOLDER
set -euo pipefail
lacuna=$1 bench=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$lacuna" train "$source/configs/quickstart.yaml" --set train.epochs=null --set train.steps=4 \
  --set sparsity.update.freq=2 --quiet --run-dir mlp
"$lacuna" train "$source/configs/shakespeare_gpt_mini.yaml" --set "data.path=$source/docs/guides/data.md" \
  --set train.steps=2 --set optimizer.lr=0.001 --quiet --run-dir gpt
for run in mlp gpt; do
  "$lacuna" quantize $run --set quantize.calibration=8 --run-dir $run-int8 >/dev/null
  "$bench" --tiny --run $run-int8 --json $run.json
  for contender in int8 float32; do grep -q "\"contender\": \"$contender\"" $run.json; done
done
"$bench" --tiny --run mlp --json mlp.json
! grep -q '"contender": "int8"' mlp.json
