# Sourced by the scripts that train networks on CIFAR-10 and write a table of their accuracies. Needs
# `prefix` (of the runs' folders), `table` (the file of finished runs), `data`, `seeds`, `variants` and
# a function `arguments` VARIANT, which prints those of `lacuna train`.
source scripts/training_runs.sh

commands() {
  local seed variant folder
  for seed in $seeds; do
    for variant in $variants; do
      folder=$results/$prefix-$variant-$seed
      if is_known "$table" "$variant" "$seed"; then
        continue
      elif [ ! -e "$folder/summary.json" ] && compgen -G "$folder/checkpoints/*.h5" >/dev/null; then
        echo "OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder' --threads 1 --quiet"
      else
        run_command "$folder" "$(arguments "$variant")" "$data" "$seed"
      fi
    done
  done
}

# Trains what is not in the table yet, and adds its lines: variant, seed, accuracy, nonzeros, FLOPs of
# a step for one example, steps.
train_and_note() {
  local seed variant line name
  run_all commands
  [ -e "$table" ] || printf 'variant\tseed\ttest_accuracy\tnnz\ttraining_flops\tsteps\n' >"$table"
  for seed in $seeds; do
    for variant in $variants; do
      is_known "$table" "$variant" "$seed" && continue
      line="$variant	$seed"
      for name in test_accuracy nnz training_flops steps; do
        line+="	$(sed -n "s/^  \"$name\": \([0-9.e+-]*\).*/\1/p" "$results/$prefix-$variant-$seed/summary.json")"
      done
      echo "$line" >>"$table"
    done
  done
}

# Milliseconds of a training step, one run after the other with the machine to itself: all the runs of
# the table side by side, whenever and wherever they were made.
declare -A step_ms
measure_steps() {
  local variant
  for variant in $(cut -f 1 "$table" | sed 1d | sort -u); do
    step_ms[$variant]=$(step_milliseconds "$results/$prefix-$variant-timing" \
      "$(arguments "$variant") --set 'data.dir=$data'")
  done
}

# A variant's line: means over all its seeds; for the accuracy, also the lowest and the highest.
row() { # VARIANT TEXT
  if [ -z "${step_ms[$1]:-}" ]; then return; fi
  awk -F '\t' -v variant="$1" -v text="$2" -v step_ms="${step_ms[$1]}" '
    $1 == variant {
      x = 100 * $3; n++; accuracy += x; nnz += $4; flops += $5; steps = $6
      if (n == 1 || x < low) low = x
      if (x > high) high = x
    }
    END {
      spread = n > 1 ? sprintf(" (%.2f–%.2f)", low, high) : ""
      printf "| %s | %.2f%s | %d | %.0f | %.0f | %.0f | %.0f |\n", text, accuracy / n, spread, n,
             nnz / n / 1e3, flops / n / 1e6, step_ms, step_ms * steps / 1000
    }' "$table"
}
