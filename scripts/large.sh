#!/usr/bin/env bash
# Trains very wide sparse networks on synthetic data, and writes docs/measurements/large.md.
# usage: scripts/large.sh      (some ten minutes)
# Finished runs are not repeated. Their folders are kept in runs/large, or in LACUNA_RESULTS_DIR.
set -euo pipefail
[ $# -eq 0 ] || { echo "usage: scripts/large.sh" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
results=${LACUNA_RESULTS_DIR:-runs/large}
source scripts/program.sh
mkdir -p "$results"

train() { # NAME ARGUMENTS...
  local folder="$results/$1"
  shift
  [ -e "$folder/summary.json" ] && return
  rm -rf "$folder"
  "$program" train "$@" --run-dir "$folder"
}
train wide configs/wide_sparse.yaml
train widest configs/large/widest_sparse.yaml

number() { # NAME KEY
  sed -n "s/^  \"$2\": \([0-9.e+-]*\),*\$/\1/p" "$results/$1/summary.json"
}
losses() { # NAME: mean loss of the first ten steps, and of the last ten
  sed -n 's/.*"split": "train", "loss": \([0-9.e+-]*\),.*/\1/p' "$results/$1/metrics.jsonl" |
    awk '{ loss[NR] = $1 } END { for (i = 1; i <= 10; ++i) { first += loss[i]; last += loss[NR - 10 + i] }
           printf "%.3f | %.3f", first / 10, last / 10 }'
}
row() { # NAME CONFIG
  awk -v neurons="$(number "$1" neurons)" -v path="$(number "$1" neurons_on_path)" \
    -v nnz="$(number "$1" nnz)" -v steps="$(number "$1" steps)" \
    -v seconds="$(number "$1" train_seconds)" -v rss="$(number "$1" peak_rss_bytes)" \
    -v losses="$(losses "$1")" -v config="$2" \
    'BEGIN { printf "| %s | %d | %d | %d | %d | %s | %.2f | %.2f |\n", config, neurons, path, nnz, steps,
             losses, seconds / steps, rss / 1073741824 }'
}

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
memory=$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)
{
  cat <<TEXT
# Large networks

MLPs on synthetic data (10 classes), trained by SET on $(number wide threads) threads of $processor, $(date +%F); $memory GiB of memory.
\`scripts/large.sh\` writes this page.

Neurons are the inputs and outputs of the linear layers. A neuron is *on a path* if nonzeros connect it to an
input and to an output of the network. Losses are means over the first and the last ten steps. Seconds are
those of a training step, including updates of the masks. GiB is the largest resident memory.

| configuration | neurons | on a path | nonzeros | steps | first loss | last loss | s per step | GiB |
|---|---|---|---|---|---|---|---|---|
$(row wide "[wide_sparse](../../configs/wide_sparse.yaml)")
$(row widest "[widest_sparse](../../configs/large/widest_sparse.yaml)")
TEXT
} >docs/measurements/large.md
echo "written: docs/measurements/large.md"
