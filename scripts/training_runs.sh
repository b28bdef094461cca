# Sourced by the scripts that train many small networks: runs side by side, one on each core; what
# came of them.
results=${LACUNA_RESULTS_DIR:-runs/results}
source scripts/program.sh
mkdir -p "$results"

# The command of a run, unless it is finished already.
run_command() { # FOLDER ARGUMENTS DATA SEED
  [ -e "$1/summary.json" ] && return
  echo "rm -rf '$1'; OMP_NUM_THREADS=1 '$program' train $2 --set 'data.dir=$3' --seed $4 --threads 1 --run-dir '$1' --quiet"
}

# Whether a table of finished runs has one, its variant and seed in the first columns.
is_known() { # TABLE VARIANT SEED
  [ -e "$1" ] && grep -q "^$2	$3	" "$1"
}

run_all() { # FUNCTION that prints a command a line
  "$1" | tr '\n' '\0' | xargs -0 -r -P "${jobs:-$(nproc)}" -I{} bash -c '{}'
}

# Mean test accuracy over the seeds, and in brackets the lowest and the highest, in percent.
accuracy() { # FOLDER without the seed at its end
  for seed in $seeds; do
    sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$1$seed/summary.json"
  done | awk '{ x = 100 * $1; sum += x; if (NR == 1 || x < low) low = x; if (x > high) high = x }
              END { printf "%.2f (%.2f–%.2f) ", sum / NR, low, high }'
}

# docs/measurements/tables.md but for the section of that title.
results_without() { # TITLE, as "## Networks"
  awk -v title="$1" '/^## / { skipping = $0 == title } !skipping' docs/measurements/tables.md
}

# Milliseconds of a training step: the least of five times twenty steps, in a run of its own.
step_milliseconds() { # FOLDER ARGUMENTS of `lacuna train`, quoted for eval
  rm -rf "$1"
  eval "'$program' train $2 --set train.epochs=null --set train.steps=120 --set train.log_every=20 \
    --set train.eval_every=null --run-dir '$1' --quiet" >&2
  sed -n 's/^{"step": \([0-9]*\),.*"split": "train".*"seconds": \([0-9.]*\).*/\1 \2/p' "$1/metrics.jsonl" |
    awk 'NR > 1 { ms = 1000 * ($2 - seconds) / ($1 - step); if (!best || ms < best) best = ms }
         { step = $1; seconds = $2 }
         END { print best }'
}
