#!/usr/bin/env bash
# Trains GPTs on Tiny Shakespeare for equal time, dense ones of several widths and sparse ones of larger
# widths, and rewrites the part of docs/measurements/tables.md about them: loss over seconds, as a table and a curve.
# usage: scripts/pareto.sh TEXT_FOLDER [SEEDS [VARIANTS]]
# (default seeds: "0"; eleven variants of two minutes each for a seed, two side by side on two cores)
# TEXT_FOLDER holds tinyshakespeare.txt. A variant is dense-WIDTH, rigl80-WIDTH or rigl90-WIDTH.
# LACUNA_PARETO_SECONDS: seconds of training of each run, on one core (default 120). The time of a step determines the
# number of steps. It is measured first, for one variant after the other; the machine must be idle. Times of steps are
# in docs/measurements/pareto_steps.tsv, results of finished runs in docs/measurements/pareto_results.tsv; either is
# measured again only if its lines are deleted. Folders of runs are kept in runs/results, or in LACUNA_RESULTS_DIR, and
# an interrupted run is resumed.
set -euo pipefail
text=$(cd "${1:?usage: scripts/pareto.sh TEXT_FOLDER [SEEDS [VARIANTS]]}" && pwd)
seeds=${2:-0}
variants=${3:-dense-64 dense-96 dense-128 dense-192 dense-256 rigl80-128 rigl80-192 rigl80-256 rigl90-192 rigl90-256 rigl90-384}
seconds=${LACUNA_PARETO_SECONDS:-120}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

steps_table=docs/measurements/pareto_steps.tsv
table=docs/measurements/pareto_results.tsv
curve=docs/measurements/pareto.svg
[ -e "$steps_table" ] || printf 'variant\tms\n' >"$steps_table"
[ -e "$table" ] || printf 'variant\tseed\tseconds\tstep\tvalidation_loss\tnnz\n' >"$table"

# The arguments of `lacuna train` for a variant that trains for so many steps.
arguments() { # VARIANT STEPS
  local end=$(($2 * 3 / 4)) config=configs/shakespeare_gpt_mini_rigl80.yaml sparsity=''
  [ "$end" -ge 1 ] || end=1
  case $1 in
    dense-*) sparsity="--set sparsity=null" ;;
    rigl??-*)
      sparsity="--set sparsity.sparsity=0.${1:4:2} --set sparsity.update.stop=$end"
      sparsity+=" --set sparsity.drop_fraction.half_period=$end"
      ;;
    *) echo "pareto: there is no variant '$1'" >&2 && return 1 ;;
  esac
  echo "$config --set 'data.path=$text/tinyshakespeare.txt' --set model.n_embd=${1#*-} --threads 1" \
    "--set train.steps=$2 --set optimizer.lr.half_period=$2 $sparsity" \
    "--set train.eval_every=$(($2 / 10 > 0 ? $2 / 10 : 1))"
}

step_ms() { # VARIANT
  awk -F '\t' -v variant="$1" '$1 == variant { print $2 }' "$steps_table"
}
for variant in $variants; do
  [ -n "$(step_ms "$variant")" ] && continue
  given=$(arguments "$variant" 120)
  ms=$(step_milliseconds "$results/pareto-$variant-timing" "$given")
  printf '%s\t%s\n' "$variant" "$ms" >>"$steps_table"
done

steps_of() { # VARIANT
  awk -v ms="$(step_ms "$1")" -v seconds="$seconds" 'BEGIN { n = int(1000 * seconds / ms); print n < 10 ? 10 : n }'
}
is_made() { # VARIANT SEED
  grep -q "^$1	$2	$seconds	" "$table"
}
commands() {
  local seed variant folder
  for seed in $seeds; do
    for variant in $variants; do
      folder=$results/pareto-$variant-$seconds-$seed
      if is_made "$variant" "$seed" || [ -e "$folder/summary.json" ]; then
        continue
      elif compgen -G "$folder/checkpoints/*.h5" >/dev/null; then
        echo "OMP_NUM_THREADS=1 '$program' train --resume --run-dir '$folder' --threads 1 --quiet"
      else
        echo "rm -rf '$folder'; OMP_NUM_THREADS=1 '$program' train $(arguments "$variant" "$(steps_of "$variant")")" \
          "--seed $seed --run-dir '$folder' --quiet"
      fi
    done
  done
}
run_all commands

# The new runs' lines, one for each evaluation.
for seed in $seeds; do
  for variant in $variants; do
    is_made "$variant" "$seed" && continue
    folder=$results/pareto-$variant-$seconds-$seed
    nnz=$(sed -n 's/^  "nnz": \([0-9]*\).*/\1/p' "$folder/summary.json")
    sed -n 's/^{"step": \([0-9]*\),.*"split": "validation", "loss": \([0-9.e+-]*\),.*/\1 \2/p' "$folder/metrics.jsonl" |
      awk -v variant="$variant" -v seed="$seed" -v seconds="$seconds" -v nnz="$nnz" \
        '{ printf "%s\t%s\t%s\t%s\t%s\t%s\n", variant, seed, seconds, $1, $2, nnz }' >>"$table"
  done
done

# For each variant and step the mean loss over its seeds: variant, seconds since the start, loss, nnz,
# seeds; in the order of the variants' names and the steps.
points=$(awk -F '\t' -v budget="$seconds" '
  FNR == NR { if (FNR > 1) ms[$1] = $2; next }
  FNR > 1 && $3 == budget && ($1 in ms) {
    key = $1 "\t" $4
    sum[key] += $5; n[key]++; nnz[key] = $6
  }
  END {
    for (key in sum) {
      split(key, part, "\t")
      printf "%s\t%d\t%.2f\t%.4f\t%d\t%d\t%s\n", part[1], part[2], part[2] * ms[part[1]] / 1000,
             sum[key] / n[key], nnz[key], n[key], ms[part[1]]
    }
  }' "$steps_table" "$table" | sort -t '	' -k 1,1V -k 2,2n)

# Losses above 2.6 are not drawn.
draw() {
  awk -F '\t' -v budget="$seconds" '
    function x(s) { return 60 + 620 * s / budget }
    function title(name,   part) {  # rigl80-128: 128, RigL 80 %
      split(name, part, "-")
      return part[2] ", " (part[1] == "dense" ? "dense" : "RigL " substr(part[1], 5) " %")
    }
    function y(l) { return 20 + 400 * (top - l) / (top - bottom) }
    { variant[NR] = $1; s[NR] = $3; loss[NR] = $4
      if (NR == 1 || $4 < low) low = $4
      if (NR == 1 || $4 > high) high = $4 }
    END {
      bottom = int(low * 10) / 10; top = high < 2.6 ? int(high * 10 + 1) / 10 : 2.6
      if (top <= bottom) top = int(high * 10 + 1) / 10
      print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 470\" font-family=\"sans-serif\" font-size=\"13\">"
      print "<title>Validation loss over seconds of training</title>"
      print "<rect width=\"860\" height=\"470\" fill=\"white\"/>"
      for (i = 0; i <= 4; i++) {
        v = bottom + (top - bottom) * i / 4
        printf "<line x1=\"60\" x2=\"680\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"52\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n", y(v), y(v), y(v) + 4, v
        printf "<text x=\"%.1f\" y=\"440\" text-anchor=\"middle\">%g</text>\n", x(budget * i / 4), budget * i / 4
      }
      print "<text x=\"60\" y=\"14\">validation loss, nats per character</text>"
      print "<text x=\"370\" y=\"462\" text-anchor=\"middle\">seconds of training on one core</text>"
      split("#1f77b4 #ff7f0e #2ca02c #d62728 #9467bd #8c564b #e377c2 #7f7f7f #bcbd22 #17becf #000000", colour, " ")
      for (i = 1; i <= NR; i++) {
        if (!(variant[i] in number)) {
          if (count) print "\"/>"
          number[variant[i]] = ++count
          c = colour[(count - 1) % 11 + 1]
          dash = variant[i] ~ /^dense/ ? "" : " stroke-dasharray=\"6 3\""
          printf "<line x1=\"695\" x2=\"725\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"2\"%s/><text x=\"732\" y=\"%d\">%s</text>\n", 20 + 22 * count, 20 + 22 * count, c, dash, 24 + 22 * count, title(variant[i])
          printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", c, dash
        }
        if (loss[i] <= top) printf "%.1f,%.1f ", x(s[i]), y(loss[i])
      }
      if (count) print "\"/>"
      print "</svg>"
    }' <<<"$points"
}
draw >"$curve.new"
mv "$curve.new" "$curve"

# A line a variant: the loss after a quarter, half and all of the time, or the evaluation next before.
rows() {
  awk -F '\t' -v budget="$seconds" '
    function flush() {
      if (name == "") return
      split(name, part, "-")
      kind = part[1] == "dense" ? "dense" : "RigL " substr(part[1], 5) " %"
      printf "| %d | %s | %.0f | %.1f | %d | %s | %s | %s | %d |\n", part[2], kind, nnz / 1000, ms, step,
             quarter == "" ? "" : sprintf("%.3f", quarter), half == "" ? "" : sprintf("%.3f", half),
             sprintf("%.3f", last), seeds
    }
    $1 != name { flush(); name = $1; quarter = half = "" }
    { if ($3 <= budget / 4 * 1.02) quarter = $4
      if ($3 <= budget / 2 * 1.02) half = $4
      last = $4; step = $2; nnz = $5; seeds = $6; ms = $7 }
    END { flush() }' <<<"$points"
}

# The best of the dense and of the sparse variants at the end, and which of them is ahead.
conclusion() {
  awk -F '\t' '
    { last[$1] = $4 }
    END {
      for (name in last) {
        kind = name ~ /^dense/ ? "dense" : "sparse"
        if (!(kind in best) || last[name] < best[kind]) { best[kind] = last[name]; which[kind] = name }
      }
      if (!("dense" in best) || !("sparse" in best)) exit
      split(which["dense"], dense, "-"); split(which["sparse"], sparse, "-")
      ahead = best["dense"] < best["sparse"] ? "The dense one is ahead" : "The sparse one is ahead"
      printf "The best dense network has %d features (%.3f), the best sparse one %d (RigL %d %%, %.3f).\n%s by %.3f.\n",
             dense[2], best["dense"], sparse[2], substr(sparse[1], 5), best["sparse"], ahead,
             best["dense"] < best["sparse"] ? best["sparse"] - best["dense"] : best["dense"] - best["sparse"]
    }' <<<"$points"
}

begin='## Loss over time: sparse widths'
others=$(results_without "$begin")
{
  echo "$others"
  cat <<TEXT

$begin

Dense and wider sparse networks after equal time: GPTs of 4 layers on Tiny Shakespeare (12 windows of 64 characters per
step, as in [shakespeare_gpt_mini_rigl80](../../configs/shakespeare_gpt_mini_rigl80.yaml)), trained for $seconds seconds on
one core of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1). The time of a step is the
smallest of five means over twenty steps on an otherwise idle machine; it determines the number of steps. Learning rate
and updates have their schedules over these steps.

The loss is that on the last tenth of the text, in nats per character, after a quarter, half and all of the time: the
mean over the seeds. Learning rates and initial values are not tuned for either side;
[results](results.md#sparse-or-dense) has a comparison with both tuned. Written by

    scripts/pareto.sh TEXT_FOLDER "$seeds"

| features | blocks' weights | thousand nonzeros | ms per step | steps | loss at $((seconds / 4)) s | at $((seconds / 2)) s | at $seconds s | seeds |
|---|---|---|---|---|---|---|---|---|
$(rows)

$(conclusion)

![Validation loss over seconds of training](pareto.svg)
TEXT
} >docs/measurements/tables.md.new
mv docs/measurements/tables.md.new docs/measurements/tables.md
echo "written: docs/measurements/tables.md and $curve"
