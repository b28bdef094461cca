#!/usr/bin/env bash
# Shrinks trained networks to parts of their FLOPs, fine-tunes them, and prints a table against the small dense
# network trained from scratch, and against unstructured sparsity: by RigL (SHRINK_SPARSE=rigl, the default), or by
# one-shot pruning of the trained network, which is then fine-tuned alike (SHRINK_SPARSE=magnitude, or another method of
# `lacuna prune`). The sparse network has the same FLOPs (SHRINK_SPARSE_AT=flops, the default), or takes about the same
# time for a training step (SHRINK_SPARSE_AT=time: the smallest of the sparsities 0.5, 0.6, 0.7, 0.8, 0.9 and 0.95 that is
# as fast as the shrunk network, as `lacuna plan` measures it).
# usage: scripts/shrink_results.sh CIFAR10_FOLDER [TEXT_FOLDER]
# CIFAR10_FOLDER holds cifar-10-batches-bin (ResNet-20, WRN-16-2); TEXT_FOLDER sst2.{train,dev,test}.txt (BERT).
# Runs that are finished are not made again, and those that were stopped go on: they stay in runs/results, or where LACUNA_RESULTS_DIR says, and the test
# accuracy of each goes to shrink_results.tsv there.
# SHRINK_SEEDS (default "0 1 2"), SHRINK_PARTS ("0.5 0.3"), SHRINK_METHODS ("magnitude saliency error"),
# SHRINK_MODELS ("resnet20 wrn16_2 bert"), SHRINK_ROUND_TO (auto; 1: counts are not rounded), SHRINK_EPOCHS (30, of bert 10), SHRINK_TUNING (10, of bert 3: epochs of
# fine-tuning) and SHRINK_ARGUMENTS (more of `lacuna train`, as "--set data.limit=5000") choose what is made. Networks
# from scratch train for the epochs of both. LACUNA_RESULTS_JOBS: runs side by side (as many as cores).
set -euo pipefail
cifar=$(cd "${1:?usage: scripts/shrink_results.sh CIFAR10_FOLDER [TEXT_FOLDER]}" && pwd)
text=${2:+$(cd "$2" && pwd)}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

seeds=${SHRINK_SEEDS:-0 1 2}
parts=${SHRINK_PARTS:-0.5 0.3}
methods=${SHRINK_METHODS:-magnitude saliency error}
models=${SHRINK_MODELS:-resnet20 wrn16_2${text:+ bert}}
sparse=${SHRINK_SPARSE:-rigl}
sparse_at=${SHRINK_SPARSE_AT:-flops}
round_to=${SHRINK_ROUND_TO:-auto}
more=${SHRINK_ARGUMENTS:-}
# In names of folders, and in tables.
rounded='' scratch_name='small dense, from scratch' sparse_name="$sparse, unstructured" sparse_folder=sparse-$sparse
if [ "$round_to" != 1 ]; then
  rounded=-rounded scratch_name='small dense of rounded sizes, from scratch'
fi
if [ "$sparse_at" = time ]; then
  sparse_name="$sparse, unstructured, equal time" sparse_folder=sparse-$sparse-time$rounded
fi
epochs() { # MODEL
  [ "$1" = bert ] && echo "${SHRINK_EPOCHS:-10}" || echo "${SHRINK_EPOCHS:-30}"
}
tuning_epochs() { # MODEL
  [ "$1" = bert ] && echo "${SHRINK_TUNING:-3}" || echo "${SHRINK_TUNING:-10}"
}
# The learning rate falls over the whole run, however long that is.
length() { # MODEL EPOCHS
  local rate=0.1
  [ "$1" = bert ] && rate=1.0e-3
  echo "--set 'optimizer.lr={type: cosine_once, init: $rate, minimum: 0.0}' --set train.epochs=$2"
}
both() { # MODEL
  length "$1" $(($(epochs "$1") + $(tuning_epochs "$1")))
}

# The configuration of a dense network, its data, and what fine-tuning has of its own.
arguments() { # MODEL
  case $1 in
    resnet20) echo "configs/cifar10_resnet20.yaml --set 'data.dir=$cifar' $more" ;;
    wrn16_2) echo "configs/cifar10_wrn16_2_rigl90.yaml --set sparsity=null --set 'data.dir=$cifar' $more" ;;
    bert) echo "configs/sst2_bert.yaml --set 'data.train=$text/sst2.train.txt' --set 'data.validation=$text/sst2.dev.txt' --set 'data.test=$text/sst2.test.txt' $more" ;;
  esac
}
# A fifth of the learning rate.
tuning() { # MODEL
  case $1 in
    bert) echo "--set 'optimizer.lr={type: cosine_once, init: 2.0e-4, minimum: 0.0}' --set train.epochs=$(tuning_epochs bert) --set optimizer.warmup=0" ;;
    *) echo "--set 'optimizer.lr={type: cosine_once, init: 0.02, minimum: 0.0}' --set train.epochs=$(tuning_epochs "$1")" ;;
  esac
}
# Of a training step of one thread.
milliseconds() { # RUN [ASSIGNMENT]
  "$program" plan "$1/config.yaml" ${2:+--set "$2"} --threads 1 --json 2> /dev/null |
    python3 -c 'import json, sys; print("%.1f" % (1000 * json.load(sys.stdin)["time"]["step_seconds"]))'
}
is_at_most() { # NUMBER LIMIT
  awk "BEGIN { exit !($1 <= $2) }"
}
# The sparsity of unstructured networks. Where it goes by time, it is kept in a file.
sparsity_for() { # MODEL PART of the FLOPs
  if [ "$sparse_at" = flops ]; then
    awk "BEGIN { print 1 - $2 }"
    return
  fi
  local file=$results/shrink-$1-$sparse_folder-$2.sparsity first=${seeds%% *} limit sparsity
  if [ ! -e "$file" ]; then
    limit=$(milliseconds "$results/shrink-$1-${methods%% *}$rounded-$2-$first")
    for sparsity in 0.5 0.6 0.7 0.8 0.9 0.95; do
      is_at_most "$(milliseconds "$results/shrink-$1-dense-$first" "sparsity=$sparsity")" "$limit" && break
    done
    echo "$sparsity" > "$file"
  fi
  cat "$file"
}
rigl() { # SPARSITY
  echo "--set 'sparsity={algorithm: rigl, sparsity: $1, distribution: uniform}'"
}
# Begins a run by COMMAND, or goes on with one that was stopped.
once() { # FOLDER COMMAND
  [ -e "$1/summary.json" ] && return
  if compgen -G "$1/checkpoints/*" > /dev/null; then
    echo "OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$1' --quiet"
  else
    echo "rm -rf '$1'; OMP_NUM_THREADS=1 $2 --quiet"
  fi
}

dense_commands() {
  for model in $models; do for seed in $seeds; do
    local folder=$results/shrink-$model-dense-$seed
    once "$folder" "'$program' train $(arguments "$model") $(length "$model" "$(epochs "$model")") --seed $seed --threads 1 --run-dir '$folder'"
  done; done
}
shrink_commands() {
  for model in $models; do for seed in $seeds; do for part in $parts; do for method in $methods; do
    local folder=$results/shrink-$model-$method$rounded-$part-$seed
    once "$folder" "'$program' shrink '$results/shrink-$model-dense-$seed' --method $method --to flops=$part --round-to $round_to $(tuning "$model") --threads 1 --run-dir '$folder' > '$folder.txt' && OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder'"
  done; done; done; done
}
# The layers of the first method's network, with the dense network's training and first values of their own.
scratch_commands() {
  for model in $models; do for seed in $seeds; do for part in $parts; do
    local folder=$results/shrink-$model-scratch$rounded-$part-$seed small=$results/shrink-$model-${methods%% *}$rounded-$part-$seed
    [ -e "$folder/summary.json" ] && continue
    python3 - "$small/config.yaml" "$results/shrink-$model-dense-$seed/config.yaml" "$folder.yaml" <<'PYTHON'
import re, sys
def sections(path):
    return {text.split(":")[0]: text for text in re.split(r"(?m)^(?=\S)", open(path).read()) if ":" in text}
whole = sections(sys.argv[2])
whole["model"] = sections(sys.argv[1])["model"]
whole.pop("run_dir", None)
whole.pop("convolution_algorithms", None)
open(sys.argv[3], "w").write("".join(whole.values()))
PYTHON
    once "$folder" "'$program' train '$folder.yaml' $more $(both "$model") --threads 1 --run-dir '$folder'"
  done; done; done
}
sparse_commands() {
  for model in $models; do for seed in $seeds; do for part in $parts; do
    local folder=$results/shrink-$model-$sparse_folder-$part-$seed sparsity
    sparsity=$(sparsity_for "$model" "$part")
    if [ "$sparse" = rigl ]; then
      once "$folder" "'$program' train $(arguments "$model") $(both "$model") $(rigl "$sparsity") --seed $seed --threads 1 --run-dir '$folder'"
    else
      once "$folder" "'$program' prune '$results/shrink-$model-dense-$seed' --method $sparse --sparsity $sparsity $(tuning "$model") --threads 1 --run-dir '$folder' > '$folder.txt' && OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder'"
    fi
  done; done; done
}

run_all dense_commands
run_all shrink_commands
run_all scratch_commands
run_all sparse_commands

# A run's size as a file of weights, in kB.
kilobytes() { # RUN
  "$program" export "$1" --format safetensors --out "$results/shrink-size.safetensors" --overwrite > /dev/null 2>&1
  awk "BEGIN { printf \"%.0f\", $(stat -c %s "$results/shrink-size.safetensors") / 1000 }"
}
first=${seeds%% *}
table=$results/shrink_results.tsv # with a line for each run
printf 'network\tflops\tchosen_by\tseed\ttest_accuracy\n' > "$table"
printf '| network | FLOPs | chosen by | test accuracy | ms per step | kB |\n|---|---|---|---|---|---|\n'
for model in $models; do
  row() { # PART NAME FOLDER
    for seed in $seeds; do
      printf '%s\t%s\t%s\t%s\t%s\n' "$model" "$1" "$2" "$seed" \
        "$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$3$seed/summary.json")" >> "$table"
    done
    printf '| %s | %s | %s | %s| %s | %s |\n' "$model" "$1" "$2" "$(accuracy "$3")" "$(milliseconds "$3$first")" "$(kilobytes "$3$first")"
  }
  row 1 'dense' "$results/shrink-$model-dense-"
  for part in $parts; do
    for method in $methods; do
      row "$part" "$method${rounded:+, rounded}" "$results/shrink-$model-$method$rounded-$part-"
    done
    row "$part" "$scratch_name" "$results/shrink-$model-scratch$rounded-$part-"
    row "$part" "$sparse_name" "$results/shrink-$model-$sparse_folder-$part-"
  done
done
