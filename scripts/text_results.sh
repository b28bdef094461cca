#!/usr/bin/env bash
# Trains small transformers on text, dense and sparse, and rewrites the part of docs/measurements/tables.md about them.
# usage: scripts/text_results.sh TEXT_FOLDER [SEEDS [CLASSIFIER_SEEDS]]
# (default seeds: "0 1 2" of the language models, "0 1 2 3 4" of the classifiers, whose accuracies scatter
# more; about 25 minutes on two cores)
# TEXT_FOLDER holds tinyshakespeare.txt, sst2.train.txt, sst2.dev.txt and sst2.test.txt.
# Results of finished runs are in docs/measurements/text_results.tsv, one line per run; a run is repeated only if its
# line is deleted. Folders of runs are kept in runs/results, or in LACUNA_RESULTS_DIR, and an interrupted run is
# resumed. LACUNA_RESULTS_EXTRA are more arguments of `lacuna train`, to try the script with a few steps.
set -euo pipefail
text=$(cd "${1:?usage: scripts/text_results.sh TEXT_FOLDER [SEEDS]}" && pwd)
model_seeds=${2:-0 1 2}
classifier_seeds=${3:-0 1 2 3 4}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

gpt=configs/shakespeare_gpt_mini
bert=configs/sst2_bert
# As shakespeare_gpt_mini_rigl80.yaml has it.
high_lr="--set 'optimizer.lr={type: cosine_once, init: 3.0e-3, minimum: 3.0e-4, half_period: 2000}'"

# Semi-sparse 2:4 for a share of the 2000 steps, then the dense masters.
shares='0 40 60 80 100'
share_sparsity() { # SHARE
  local semi='algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}'
  case $1 in
    0) echo null ;;
    100) echo "{$semi}" ;;
    *) echo "{phases: [{until: $((20 * $1)), $semi}, {algorithm: dense}]}" ;;
  esac
}

# The arguments of `lacuna train` for a variant.
arguments() {
  echo "$(plain_arguments "$1") ${LACUNA_RESULTS_EXTRA:-}"
}
plain_arguments() {
  local shakespeare="--set 'data.path=$text/tinyshakespeare.txt'"
  local sst2="--set 'data.train=$text/sst2.train.txt' --set 'data.validation=$text/sst2.dev.txt'"
  sst2+=" --set 'data.test=$text/sst2.test.txt'"
  case $1 in
    gpt-dense) echo "$gpt.yaml $shakespeare" ;;
    gpt-dense-high) echo "$gpt.yaml $shakespeare $high_lr" ;;
    gpt-rigl80) echo "${gpt}_rigl80.yaml $shakespeare" ;;
    gpt-static80) echo "${gpt}_rigl80.yaml $shakespeare --set 'sparsity={algorithm: static, sparsity: 0.8}'" ;;
    gpt-share-*) echo "$gpt.yaml $shakespeare $high_lr --set 'sparsity=$(share_sparsity "${1#gpt-share-}")'" ;;
    bert-dense) echo "$bert.yaml $sst2" ;;
    bert-rigl80) echo "${bert}_rigl80.yaml $sst2" ;;
    bert-2:4) echo "${bert}_rigl80.yaml $sst2 --set 'sparsity={algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, param_filter: [\"bert.encoder.*.dense.weight\", \"bert.encoder.*.self.*.weight\"]}'" ;;
  esac
}

models='gpt-dense gpt-dense-high gpt-rigl80 gpt-static80'
models+=" $(for s in $shares; do [ "$s" = 0 ] || echo "gpt-share-$s"; done | tr '\n' ' ')"
classifiers='bert-dense bert-rigl80 bert-2:4'
table=docs/measurements/text_results.tsv
seeds_of() { # VARIANT
  case $1 in
    gpt-*) echo "$model_seeds" ;;
    *) echo "$classifier_seeds" ;;
  esac
}
# The runs that are not in the table yet: a variant and a seed a line.
missing_runs() {
  local seed variant
  for variant in $models $classifiers; do
    for seed in $(seeds_of "$variant"); do
      is_known "$table" "$variant" "$seed" || echo "$variant $seed"
    done
  done
}
commands() {
  local seed variant folder
  while read -r variant seed; do
    folder=$results/text-$variant-$seed
    if [ -e "$folder/summary.json" ]; then
      continue
    elif compgen -G "$folder/checkpoints/*.h5" >/dev/null; then
      echo "OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder' --threads 1 --quiet"
      continue
    fi
    echo "rm -rf '$folder'; OMP_NUM_THREADS=1 '$program' train $(arguments "$variant") --seed $seed --threads 1 --run-dir '$folder' --quiet"
  done < <(missing_runs)
}
run_all commands

# The new runs' lines: variant, seed, what it is judged by, steps. A language model is judged by its loss, a
# classifier by the test accuracy, in percent, of the checkpoint that was best on the validation split.
[ -e "$table" ] || printf 'variant\tseed\tvalue\tsteps\n' >"$table"
number() { # FOLDER NAME
  sed -n "s/^  \"$2\": \([0-9.e+-]*\).*/\1/p" "$1/summary.json"
}
while read -r variant seed; do
  folder=$results/text-$variant-$seed
  case $variant in
    gpt-*) value=$(number "$folder" validation_loss) ;;
    *) value=$("$program" eval "$folder/checkpoints/best.h5" </dev/null | sed -n 's/^test .*accuracy \([0-9.]*\) %.*/\1/p') ;;
  esac
  printf '%s\t%s\t%s\t%s\n' "$variant" "$seed" "$value" "$(number "$folder" steps)" >>"$table"
done < <(missing_runs)

# A column of a variant's lines, for each of the seeds.
column() { # VARIANT NUMBER
  awk -F '\t' -v variant="$1" -v column="$2" -v seeds=" $(seeds_of "$1") " \
    '$1 == variant && index(seeds, " " $2 " ") { print $column }' "$table"
}
# Seconds of training of a run that has a core for itself: its steps times the time of one.
seconds() { # VARIANT
  local ms
  ms=$(step_milliseconds "$results/text-$1-timing" "$(arguments "$1") --threads 1")
  column "$1" 4 | awk -v ms="$ms" 'END { printf "%.0f", $1 * ms / 1000 }'
}
spread='{ sum += $1; if (NR == 1 || $1 < low) low = $1; if ($1 > high) high = $1 }
        END { printf format, sum / NR, low, high }'
model_row() { # VARIANT TEXT
  echo "| $2 | $(column "$1" 3 | awk -v format='%.3f (%.3f–%.3f)' "$spread") |" "$(seconds "$1") |"
}
share_row() { # SHARE
  local variant=gpt-share-$1
  [ "$1" = 0 ] && variant=gpt-dense-high
  echo "| $1 % | $(column "$variant" 3 | awk -v format='%.3f (%.3f–%.3f)' "$spread") |"
}
classifier_row() { # VARIANT TEXT
  echo "| $2 | $(column "$1" 3 | awk -v format='%.2f (%.2f–%.2f)' "$spread") | $(seconds "$1") |"
}

begin='## Transformers on text'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

Mean of seeds $(echo $model_seeds | sed 's/ /, /g') (SST-2: $(echo $classifier_seeds | sed 's/ /, /g')), in brackets the lowest and the highest.
Seconds are those of training on one core of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1),
without evaluations: the number of steps multiplied by the time of a step, which is the smallest of five means
over twenty steps. Written by

    scripts/text_results.sh TEXT_FOLDER "$model_seeds" "$classifier_seeds"

Tiny Shakespeare, character by character, with a GPT of 4 layers and 128 features and a context of 64. The table
shows the loss on the last tenth of the text, in nats per character, after 2,000 steps of 12 windows. The weights
of the blocks are sparse; the embedding, which is also the head, is dense. The learning rate 1e-3 is nanoGPT's.
Dense and sparse models are better with a larger one, and the sparse models gain more.

| model | validation loss | seconds |
|---|---|---|
$(model_row gpt-dense "dense, learning rate 1e-3 ([shakespeare_gpt_mini](../../configs/shakespeare_gpt_mini.yaml))")
$(model_row gpt-dense-high "dense, 3e-3")
$(model_row gpt-rigl80 "RigL 80 %, 3e-3 ([shakespeare_gpt_mini_rigl80](../../configs/shakespeare_gpt_mini_rigl80.yaml))")
$(model_row gpt-static80 "static 80 %, 3e-3")

SST-2, sentences of film reviews, with a BERT of 2 layers and 128 features from random weights. The table shows
the test accuracy, in percent, of the checkpoint that is best on the validation split.

| model | test accuracy | seconds |
|---|---|---|
$(classifier_row bert-dense "dense ([sst2_bert](../../configs/sst2_bert.yaml))")
$(classifier_row bert-rigl80 "RigL 80 % ([sst2_bert_rigl80](../../configs/sst2_bert_rigl80.yaml))")
$(classifier_row bert-2:4 "2:4, chosen at every step")

### Semi-sparse at first, dense for the rest, in a transformer

The GPT with SemiSparse 2:4 in its blocks for a share of the steps, then with the dense master weights. The
learning rate is 3e-3; the table shows the validation loss:

| sparse steps | validation loss |
|---|---|
$(for s in $shares; do share_row "$s"; done)
TEXT
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md"
