#!/usr/bin/env bash
# Prunes trained models in one shot by every method, and rewrites the part of docs/measurements/tables.md about it.
# usage: scripts/one_shot_results.sh CIFAR10_FOLDER [TEXT_FOLDER]   (about an hour on two cores with both)
# CIFAR10_FOLDER holds cifar-10-batches-bin, TEXT_FOLDER the files of scripts/text_results.sh. The dense models of that
# script (seed 0) are trained first if they are missing.
# Finished runs are not repeated. Their folders are kept in runs/results, or in LACUNA_RESULTS_DIR.
# ONE_SHOT_TUNE=0 omits the training after pruning; a list such as "magnitude-80 admm+ls-2:4" selects what is trained.
set -euo pipefail
data=$(cd "${1:?usage: scripts/one_shot_results.sh CIFAR10_FOLDER [TEXT_FOLDER]}" && pwd)
text=${2:+$(cd "$2" && pwd)}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

resnet=tests/golden/models/resnet20_cifar10.safetensors
methods='magnitude wanda wanda+ls sparsegpt sparsegpt+ls admm admm+ls'
targets='50 70 80 2:4'

# The section `sparsity` of a method and a target; + ls: with least squares.
section() { # METHOD TARGET KEYS
  local target="sparsity: 0.$2"
  [ "$2" = 2:4 ] && target='pattern: {type: nm, n: 2, m: 4}'
  local ls=
  [[ $1 == *+ls ]] && ls=', least_squares: true'
  echo "sparsity: {algorithm: ${1%+ls}, $target$ls, $3}"
}

# Writes the configuration of a pruning, and prints its command unless it is done.
prune_command() { # MODEL CHECKPOINT METHOD TARGET KEYS [MORE OF A CONFIGURATION] [--set …]
  local folder=$results/one-shot-$1-$3-$4
  [ -e "$folder/prune.json" ] && return
  { section "$3" "$4" "$5"; [ -z "${6:-}" ] || cat "$6"; } >"$folder.yaml"
  echo "rm -rf '$folder'; OMP_NUM_THREADS=1 '$program' prune '$2' '$folder.yaml' --run-dir '$folder' --set train.threads=1 ${7:-} > /dev/null 2> '$folder.log' || cat '$folder.log'"
}

resnet_commands() {
  sed '/^sparsity:/,/^$/d' configs/prune/cifar10_resnet20.yaml >"$results/one-shot-resnet.yaml"
  for target in $targets; do
    for method in $methods; do
      prune_command resnet "$resnet" "$method" "$target" \
        'param_filter: ["layer*.conv*.weight"], calibration: 512' \
        "$results/one-shot-resnet.yaml" "--set 'data.dir=$data'"
    done
  done
}

text_commands() {
  for target in $targets; do
    for method in $methods; do
      prune_command gpt "$results/text-gpt-dense-high-0" "$method" "$target" 'calibration: 256'
      prune_command bert "$results/text-bert-dense-0/checkpoints/best.h5" "$method" "$target" \
        'param_filter: ["bert.encoder.*.dense.weight", "bert.encoder.*.self.*.weight"], calibration: 512'
    done
  done
}

# Each method at 80 %, and admm with least squares at every target.
tuned() {
  if [ "${ONE_SHOT_TUNE:-1}" != 1 ]; then
    printf '%s\n' $ONE_SHOT_TUNE
    return
  fi
  for method in $methods; do echo "$method-80"; done
  for target in 50 70 2:4; do echo "admm+ls-$target"; done
}
tune_commands() {
  local name folder
  for name in $(tuned); do
    folder=$results/one-shot-resnet-$name
    [ -e "$folder/tuned/summary.json" ] && continue
    echo "rm -rf '$folder-tuned'; cp -r '$folder' '$folder-tuned' && OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder-tuned' --quiet && mkdir -p '$folder/tuned' && cp '$folder-tuned/summary.json' '$folder/tuned/'"
  done
}

run_all resnet_commands
[ "${ONE_SHOT_TUNE:-1}" = 0 ] || run_all tune_commands
if [ -n "$text" ]; then
  text_training() {
    local gpt="configs/shakespeare_gpt_mini.yaml --set 'data.path=$text/tinyshakespeare.txt' --set 'optimizer.lr={type: cosine_once, init: 3.0e-3, minimum: 3.0e-4, half_period: 2000}'"
    local bert="configs/sst2_bert.yaml --set 'data.train=$text/sst2.train.txt' --set 'data.validation=$text/sst2.dev.txt' --set 'data.test=$text/sst2.test.txt'"
    local name
    for name in gpt-dense-high bert-dense; do
      [ -e "$results/text-$name-0/summary.json" ] && continue
      local arguments=$gpt
      [ $name = bert-dense ] && arguments=$bert
      echo "rm -rf '$results/text-$name-0'; OMP_NUM_THREADS=1 '$program' train $arguments --seed 0 --threads 1 --run-dir '$results/text-$name-0' --quiet"
    done
  }
  run_all text_training
  run_all text_commands
fi

# A run's result on a split, before or after pruning, from its log.
number() { # MODEL METHOD TARGET before|after SPLIT accuracy|perplexity
  sed -n "s/^$4 *$5 .*$6 \([0-9.e+]*\).*/\1/p" "$results/one-shot-$1-$2-$3/log.txt" | head -1
}
rows() { # MODEL SPLIT METRIC
  local target method
  for target in $targets; do
    echo -n "| ${target/%0/0 %} |"
    for method in $methods; do echo -n " $(number "$1" "$method" "$target" after "$2" "$3") |"; done
    echo
  done
}
head_row='| | magnitude | Wanda | Wanda + LS | SparseGPT | SparseGPT + LS | ADMM | ADMM + LS |
|---|---|---|---|---|---|---|---|'

tuned_rows() {
  local name
  for name in $(tuned); do
    [ -e "$results/one-shot-resnet-$name/tuned/summary.json" ] || continue
    echo "| ${name%-*} | ${name##*-} | $(number resnet "${name%-*}" "${name##*-}" after test accuracy) |" \
      "$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$results/one-shot-resnet-$name/tuned/summary.json" |
        awk '{ printf "%.2f", 100 * $1 }') |"
  done
}

begin='## One-shot pruning'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

Trained models, pruned in one shot ([pruning](../guides/pruning.md)). LS: the kept weights are fitted by least squares.
Written by

    scripts/one_shot_results.sh CIFAR10_FOLDER${text:+ TEXT_FOLDER}

A ResNet-20 for CIFAR-10, trained with another tool (tests/golden/models). All convolutions but the first are pruned,
with 512 training images for calibration ([configs/prune/cifar10_resnet20](../../configs/prune/cifar10_resnet20.yaml)).
Test accuracy in percent on JPEG copies of the images, $(number resnet magnitude 50 before test accuracy) before pruning:

$head_row
$(rows resnet test accuracy)
TEXT
  if [ "${ONE_SHOT_TUNE:-1}" != 0 ]; then
    cat <<TEXT

Then the network trains for three epochs with these masks (SGD, learning rate from 0.01 along a cosine to 0). It was
trained on the original images, and sees the copies for the first time in these epochs:

| method | sparsity | pruned | and trained |
|---|---|---|---|
$(tuned_rows)
TEXT
  fi
  if [ -n "$text" ]; then
    cat <<TEXT

The dense GPT for Tiny Shakespeare ([table](#transformers-on-text), learning rate 3e-3, seed 0). The weights of the
blocks are pruned, with 256 windows for calibration. Perplexity of a character on the last tenth of the text,
$(number gpt magnitude 50 before validation perplexity) before pruning:

$head_row
$(rows gpt validation perplexity)

The dense BERT for SST-2 (seed 0, the checkpoint that is best on the validation split). The weights of the encoder are
pruned, with 512 sentences for calibration. Test accuracy in percent, $(number bert magnitude 50 before test accuracy) before pruning:

$head_row
$(rows bert test accuracy)
TEXT
  fi
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
