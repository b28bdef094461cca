#!/usr/bin/env bash
# Shrinks trained networks to parts of their FLOPs, fine-tunes them, and prints a table against small dense networks
# trained from scratch and against unstructured sparsity.
# usage: scripts/shrink_results.sh CIFAR10_FOLDER [TEXT_FOLDER]
# CIFAR10_FOLDER contains cifar-10-batches-bin (ResNet-20, WRN-16-2); TEXT_FOLDER sst2.{train,dev,test}.txt (BERT).
# Finished runs are not repeated, and stopped ones continue: they stay in runs/results, or LACUNA_RESULTS_DIR. A line for
# each run goes to shrink_results.tsv in that folder.
#
# Variables, with their defaults:
# SHRINK_MODELS "resnet20 wrn16_2 bert", SHRINK_SEEDS "0 1 2", SHRINK_PARTS "0.5 0.3" (of the FLOPs)
# SHRINK_METHODS "magnitude saliency error": methods of `lacuna shrink`; structured: units are masked in the first half of
#   a training as long as the dense network's, then removed, and the network is fine-tuned like the others
# SHRINK_ROUND_TO auto: multiple of channels and neurons; 1: counts are not rounded
# SHRINK_EPOCHS 30, for bert 10: epochs of the dense network
# SHRINK_TUNING 10, for bert 3: epochs of fine-tuning
# SHRINK_EARLY "": if set, the dense network's learning rate falls as in a training for the epochs of both, which ends
#   after its own; such runs need a LACUNA_RESULTS_DIR of their own
# SHRINK_TUNING_RATE 1: initial learning rate of fine-tuning, as a fraction of the dense network's
# SHRINK_DISTILL "" (none): temperature and weight of the distillation from the dense network while fine-tuning, as "4 0.9"
# SHRINK_SCRATCH "both": networks from scratch train for the epochs of both (both), of the dense network alone (dense), of
#   fine-tuning alone (tuning), or for the epochs of both with the dense network as a teacher (distilled, with
#   SHRINK_DISTILL's numbers)
# SHRINK_SPARSE rigl: the unstructured network is trained by RigL for the epochs of both; a method of `lacuna prune`, as
#   magnitude: it is pruned from the dense network in one shot, and fine-tuned like the shrunk one
# SHRINK_SPARSE_AT flops: the unstructured network has as many FLOPs; time: its step takes about as long, which is the
#   smallest of the sparsities 0.5, 0.6, 0.7, 0.8, 0.9 and 0.95 for which `lacuna plan` measures a step as fast
# SHRINK_MEASURE_WITH "": a command put before measurements of steps, as "chrt -f 20 taskset -c 0" on a busy machine
# SHRINK_ARGUMENTS "": more arguments of `lacuna train`, as "--set data.limit=5000"
# LACUNA_RESULTS_JOBS: runs at the same time (default: the number of cores)
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
tuning_rate=${SHRINK_TUNING_RATE:-1}
early=${SHRINK_EARLY:-}
distill=${SHRINK_DISTILL:-}
scratch=${SHRINK_SCRATCH:-both}
more=${SHRINK_ARGUMENTS:-}
# In names of folders, and in tables.
rounded='' sizes='' sparse_name="$sparse, unstructured" sparse_folder=sparse-$sparse
if [ "$round_to" != 1 ]; then
  rounded=-rounded sizes=' of rounded sizes'
fi
if [ "$sparse_at" = time ]; then
  sparse_name="$sparse_name, equal time" sparse_folder=$sparse_folder-time$rounded
fi
tuned=-rate$tuning_rate${distill:+-distilled-${distill// /-}}
tuned_name="rate $tuning_rate${distill:+, distilled}"
epochs() { # MODEL
  [ "$1" = bert ] && echo "${SHRINK_EPOCHS:-10}" || echo "${SHRINK_EPOCHS:-30}"
}
tuning_epochs() { # MODEL
  [ "$1" = bert ] && echo "${SHRINK_TUNING:-3}" || echo "${SHRINK_TUNING:-10}"
}
# The learning rate falls over the whole run, however long that is, or over another number of epochs.
length() { # MODEL EPOCHS [FRACTION of the learning rate] [EPOCHS over which it falls]
  local rate=0.1
  [ "$1" = bert ] && rate=0.001
  rate=$(awk "BEGIN { printf \"%.6f\", $rate * ${3:-1} }")
  echo "--set 'optimizer.lr={type: cosine_once, init: $rate, minimum: 0.0${4:+, half_period: $4 epochs}}' --set train.epochs=$2"
}
both() { # MODEL
  length "$1" $(($(epochs "$1") + $(tuning_epochs "$1")))
}
# The loss with the dense network of the seed as a teacher.
teacher() { # MODEL SEED
  [ -z "$distill" ] && return
  echo "--set loss.type=distillation --set 'loss.teacher=$results/shrink-$1-dense-$2' --set loss.temperature=${distill% *} --set loss.weight=${distill#* }"
}

# The configuration of a dense network, its data, and what fine-tuning has of its own.
arguments() { # MODEL
  case $1 in
    resnet20) echo "configs/cifar10_resnet20.yaml --set 'data.dir=$cifar' $more" ;;
    wrn16_2) echo "configs/cifar10_wrn16_2_rigl90.yaml --set sparsity=null --set 'data.dir=$cifar' $more" ;;
    bert) echo "configs/sst2_bert.yaml --set 'data.train=$text/sst2.train.txt' --set 'data.validation=$text/sst2.dev.txt' --set 'data.test=$text/sst2.test.txt' $more" ;;
  esac
}
tuning() { # MODEL SEED
  echo "$(length "$1" "$(tuning_epochs "$1")" "$tuning_rate") $([ "$1" = bert ] && echo "--set optimizer.warmup=0") $(teacher "$1" "$2")"
}
# Of a training step of one thread, without a teacher.
milliseconds() { # RUN [ASSIGNMENT]
  ${SHRINK_MEASURE_WITH:-} "$program" plan "$1/config.yaml" --set loss=cross_entropy ${2:+--set "$2"} --threads 1 --json 2> /dev/null |
    python3 -c 'import json, sys; print("%.1f" % (1000 * json.load(sys.stdin)["time"]["step_seconds"]))'
}
is_at_most() { # NUMBER LIMIT
  awk "BEGIN { exit !($1 <= $2) }"
}
# The sparsity of unstructured networks. If it is chosen by time, it is kept in a file.
sparsity_for() { # MODEL PART of the FLOPs
  if [ "$sparse_at" = flops ]; then
    awk "BEGIN { print 1 - $2 }"
    return
  fi
  local file=$results/shrink-$1-$sparse_folder-$2.sparsity first=${seeds%% *} limit sparsity
  if [ ! -e "$file" ]; then
    limit=$(milliseconds "$(shrunk "$1" "${methods%% *}" "$2")$first")
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

dense_length() { # MODEL
  length "$1" "$(epochs "$1")" 1 ${early:+"$(($(epochs "$1") + $(tuning_epochs "$1")))"}
}
dense_commands() {
  for model in $models; do for seed in $seeds; do
    local folder=$results/shrink-$model-dense-$seed
    once "$folder" "'$program' train $(arguments "$model") $(dense_length "$model") --seed $seed --threads 1 --run-dir '$folder'"
  done; done
}
# The folder of a shrunk network, without the seed.
shrunk() { # MODEL METHOD PART
  echo "$results/shrink-$1-$2$rounded$tuned-$3-"
}
# Networks whose units are masked in the first half of their training.
masked_commands() {
  [[ " $methods " == *" structured "* ]] || return 0
  for model in $models; do for seed in $seeds; do for part in $parts; do
    local folder=$results/shrink-$model-masked$rounded-$part-$seed
    once "$folder" "'$program' train $(arguments "$model") $(length "$model" "$(epochs "$model")") --set 'sparsity={algorithm: structured, to: {flops: $part}, criterion: saliency, round_to: $round_to, update: {freq: 2 %, stop: 50 %}}' --seed $seed --threads 1 --run-dir '$folder'"
  done; done; done
}
shrink_commands() {
  for model in $models; do for seed in $seeds; do for part in $parts; do for method in $methods; do
    local folder run=$results/shrink-$model-dense-$seed what="--method $method --to flops=$part --round-to $round_to"
    folder=$(shrunk "$model" "$method" "$part")$seed
    [ "$method" = structured ] && run=$results/shrink-$model-masked$rounded-$part-$seed what='--method dead'
    once "$folder" "'$program' shrink '$run' $what $(tuning "$model" "$seed") --threads 1 --run-dir '$folder' > '$folder.txt' && OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder'"
  done; done; done; done
}
# The layers of the first method's network, with the dense network's training and first values of their own.
scratch_commands() {
  for model in $models; do for seed in $seeds; do for part in $parts; do for kind in $scratch; do
    local folder=$results/shrink-$model-scratch-$kind$rounded-$part-$seed small training
    small=$(shrunk "$model" "${methods%% *}" "$part")$seed
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
    case $kind in
      both) training=$(both "$model") ;;
      dense) training=$(length "$model" "$(epochs "$model")") ;;
      tuning) training=$(length "$model" "$(tuning_epochs "$model")") ;;
      distilled) training="$(both "$model") $(teacher "$model" "$seed")" ;;
    esac
    once "$folder" "'$program' train '$folder.yaml' $more $training --threads 1 --run-dir '$folder'"
  done; done; done; done
}
# The folder of an unstructured network, without the seed.
unstructured() { # MODEL PART
  [ "$sparse" = rigl ] && echo "$results/shrink-$1-$sparse_folder-$2-" || echo "$results/shrink-$1-$sparse_folder$tuned-$2-"
}
sparse_commands() {
  for model in $models; do for seed in $seeds; do for part in $parts; do
    local folder sparsity
    folder=$(unstructured "$model" "$part")$seed
    sparsity=$(sparsity_for "$model" "$part")
    if [ "$sparse" = rigl ]; then
      once "$folder" "'$program' train $(arguments "$model") $(both "$model") $(rigl "$sparsity") --seed $seed --threads 1 --run-dir '$folder'"
    else
      once "$folder" "'$program' prune '$results/shrink-$model-dense-$seed' --method $sparse --sparsity $sparsity $(tuning "$model" "$seed") --threads 1 --run-dir '$folder' > '$folder.txt' && OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder'"
    fi
  done; done; done
}

run_all dense_commands
run_all masked_commands
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
printf 'network\tflops\tchosen_by\tseed\ttest_accuracy\tepochs\ttuning\targuments\n' > "$table"
printf '| network | FLOPs | chosen by | epochs | test accuracy | ms per step | kB |\n|---|---|---|---|---|---|---|\n'
for model in $models; do
  dense=$(epochs "$model") tuned_for=$(tuning_epochs "$model")
  all=$((dense + tuned_for))
  row() { # PART NAME FOLDER EPOCHS [how it is fine-tuned]
    for seed in $seeds; do
      printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$model" "$1" "$2" "$seed" \
        "$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$3$seed/summary.json")" "$4" "${5:-}" "$more" >> "$table"
    done
    printf '| %s | %s | %s%s | %s | %s| %s | %s |\n' "$model" "$1" "$2" "${5:+, $5}" "$4" "$(accuracy "$3")" \
      "$(milliseconds "$3$first")" "$(kilobytes "$3$first")"
  }
  row 1 'dense' "$results/shrink-$model-dense-" "$dense"
  for part in $parts; do
    for method in $methods; do
      row "$part" "$method${rounded:+, rounded}" "$(shrunk "$model" "$method" "$part")" "$dense+$tuned_for" "$tuned_name"
    done
    for kind in $scratch; do
      case $kind in
        dense) trained=$dense ;;
        tuning) trained=$tuned_for ;;
        *) trained=$all ;;
      esac
      row "$part" "small dense$sizes, from scratch" "$results/shrink-$model-scratch-$kind$rounded-$part-" \
        "$trained" "$([ "$kind" = distilled ] && echo distilled)"
    done
    if [ "$sparse" = rigl ]; then
      row "$part" "$sparse_name" "$(unstructured "$model" "$part")" "$all"
    else
      row "$part" "$sparse_name" "$(unstructured "$model" "$part")" "$dense+$tuned_for" "$tuned_name"
    fi
  done
done
