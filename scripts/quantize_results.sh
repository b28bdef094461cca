#!/usr/bin/env bash
# Trains sparse networks, converts them to int8 by every method, and prints a table of the loss of accuracy.
# usage: scripts/quantize_results.sh MNIST_FOLDER [CIFAR10_FOLDER [TEXT_FOLDER]]
# MNIST_FOLDER holds the four IDX files, CIFAR10_FOLDER cifar-10-batches-bin, TEXT_FOLDER tinyshakespeare.txt and
# sst2.{train,dev,test}.txt. Sparse networks have groups of 1 x 4. All linear layers of the MLP are quantized; in the
# other networks, all linear layers and convolutions except the first and the last one.
# Results of finished runs are in docs/measurements/quantize_results.tsv, one line per run; a run is repeated only if
# its line is deleted. Folders of runs are kept in runs/results, or in LACUNA_RESULTS_DIR.
# QUANTIZE_SEEDS (default "0 1 2"), QUANTIZE_NETWORKS ("mnist resnet20 gpt bert", those whose data is given) and
# QUANTIZE_WAYS select runs; LACUNA_RESULTS_JOBS is the number of runs at a time (default: the number of cores).
set -euo pipefail
mnist=$(cd "${1:?usage: scripts/quantize_results.sh MNIST_FOLDER [CIFAR10_FOLDER [TEXT_FOLDER]]}" && pwd)
cifar=${2:+$(cd "$2" && pwd)}
text=${3:+$(cd "$3" && pwd)}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/training_runs.sh

seeds=${QUANTIZE_SEEDS:-0 1 2}
networks=${QUANTIZE_NETWORKS:-mnist${cifar:+ resnet20}${text:+ gpt bert}}
# Of a sparse run: rounded, GPTQ, and trained for a little longer: in float32 (then GPTQ), on grids that are
# found, on grids that are learned. Of a dense run: mask and grid at once, and one after the other, in both orders
# (pruning moves values off the grid, so they are rounded once more to the nearest ones of a new grid).
sparse_ways='nearest gptq longer observed learned'
dense_ways='sparsegpt+gptq sparsegpt,gptq gptq,sparsegpt admm+gptq admm,gptq gptq,admm'
ways=${QUANTIZE_WAYS:-$sparse_ways $dense_ways}
table=docs/measurements/quantize_results.tsv
groups='pattern: {type: block, rows: 1, cols: 4}'
one_shot_sparsity=0.7

# Trainings are short: the GPT has 1,000 steps, the BERT 5 epochs, and ResNet-20, which is trained
# already, sees 10,000 images.
data() { # NETWORK
  case $1 in
    mnist) echo "--set 'data.dir=$mnist'" ;;
    resnet20) echo "--set 'data.dir=$cifar' --set data.limit=10000" ;;
    gpt) echo "--set 'data.path=$text/tinyshakespeare.txt'" ;;
    bert) echo "--set 'data.train=$text/sst2.train.txt' --set 'data.validation=$text/sst2.dev.txt' --set 'data.test=$text/sst2.test.txt'" ;;
  esac
}
short() { # NETWORK
  case $1 in
    gpt) echo "--set 'optimizer.lr={type: cosine_once, init: 3.0e-3, minimum: 3.0e-4, half_period: 1000}' --set train.steps=1000" ;;
    bert) echo "--set optimizer.lr.half_period=1085 --set train.epochs=5" ;;
  esac
}
# The dense network, and what its training has of its own.
dense() { # NETWORK
  case $1 in
    mnist) echo "configs/mnist_mlp_dense.yaml" ;;
    gpt) echo "configs/shakespeare_gpt_mini.yaml $(short gpt)" ;;
    bert) echo "configs/sst2_bert.yaml $(short bert)" ;;
  esac
}
# The sparse network; ResNet-20's is pruned, and trained for three epochs.
sparse() { # NETWORK
  case $1 in
    mnist) echo "configs/mnist_mlp_rigl.yaml" ;;
    gpt) echo "configs/shakespeare_gpt_mini_rigl80.yaml $(short gpt) --set sparsity.update.stop=750 --set sparsity.drop_fraction.half_period=750" ;;
    bert) echo "configs/sst2_bert_rigl80.yaml $(short bert) --set sparsity.update.stop=800 --set sparsity.drop_fraction.half_period=800" ;;
  esac
}
# A short training of the sparse network, by a tenth of the learning rate.
longer() { # NETWORK
  case $1 in
    mnist) echo "--set 'optimizer.lr={type: cosine_once, init: 1.0e-4, minimum: 0.0, half_period: 938}' --set train.epochs=2" ;;
    resnet20) echo "--set 'optimizer.lr={type: cosine_once, init: 1.0e-3, minimum: 0.0, half_period: 158}' --set train.epochs=2" ;;
    gpt) echo "--set 'optimizer.lr={type: cosine_once, init: 3.0e-4, minimum: 0.0, half_period: 300}' --set optimizer.warmup=0 --set train.steps=300" ;;
    bert) echo "--set 'optimizer.lr={type: cosine_once, init: 1.0e-4, minimum: 0.0, half_period: 217}' --set optimizer.warmup=0 --set train.epochs=1" ;;
  esac
}
filter() { # NETWORK  what is pruned
  case $1 in
    mnist) echo ', param_filter: ["fc1.weight", "fc2.weight"]' ;;
    resnet20) echo ', param_filter: ["layer*.conv*.weight"]' ;;
    gpt) ;;
    bert) echo ', param_filter: ["bert.encoder.*.dense.weight", "bert.encoder.*.self.*.weight"]' ;;
  esac
}
covered() { # NETWORK  what is quantized
  [ "$1" = mnist ] && echo ', param_filter: "*.weight"'
  return 0
}

base_of() { echo "$results/quantize-$1-sparse-$2"; } # NETWORK SEED
dense_of() { # NETWORK SEED
  if [ "$1" = resnet20 ]; then
    echo tests/golden/models/resnet20_cifar10.safetensors
  else
    echo "$results/quantize-$1-dense-$2"
  fi
}
folder_of() { echo "$results/quantize-$1-$3-$2"; } # NETWORK SEED WAY
wants() { [[ " $ways " == *" $1 "* ]]; }
is_noted() { [ -e "$table" ] && grep -q "^$1	$2	$3	" "$table"; } # NETWORK SEED WAY

one='OMP_NUM_THREADS=1'
train_once() { # FOLDER ARGUMENTS
  [ -e "$1/summary.json" ] || echo "rm -rf '$1'; $one '$program' train $2 --threads 1 --run-dir '$1' --quiet"
}
# Whether a way of a network is still to be made.
missing() { # NETWORK SEED WAYS
  local way
  for way in $3; do
    if wants "$way" && ! is_noted "$1" "$2" "$way"; then return 0; fi
  done
  return 1
}

base_commands() {
  local network seed folder
  sed '/^sparsity:/,/^$/d' configs/prune/cifar10_resnet20.yaml >"$results/quantize-resnet20.yaml"
  for network in $networks; do for seed in $seeds; do
    if missing "$network" "$seed" "$sparse_ways"; then
      folder=$(base_of "$network" "$seed")
      if [ "$network" != resnet20 ]; then
        train_once "$folder" "$(sparse "$network") $(data "$network") --set 'sparsity.${groups/: /=}' --seed $seed"
      elif [ ! -e "$folder/summary.json" ]; then
        { echo "sparsity: {algorithm: admm, sparsity: 0.9, least_squares: true, calibration: 512, $groups$(filter resnet20)}"
          cat "$results/quantize-resnet20.yaml"; } | sed "s/^  seed: .*/  seed: $seed/; s/half_period: 1173/half_period: 237/" >"$folder.yaml"
        echo "rm -rf '$folder'; $one '$program' prune '$(dense_of resnet20 "$seed")' '$folder.yaml' $(data resnet20) --set train.threads=1 --run-dir '$folder' > '$folder.txt' 2>&1 && $one '$program' train --resume --run-dir '$folder' --threads 1 --quiet"
      fi
    fi
    if [ "$network" != resnet20 ] && missing "$network" "$seed" "$dense_ways"; then
      train_once "$(dense_of "$network" "$seed")" "$(dense "$network") $(data "$network") --seed $seed"
    fi
  done; done
}

quantize_once() { # RUN FOLDER SECTION [ARGUMENTS]
  [ -e "$2/quantize.json" ] ||
    echo "rm -rf '$2'; $one '$program' quantize '$1' --set 'quantize={$3}' ${4:-} --threads 1 --run-dir '$2' > '$2.txt' 2>&1 || cat '$2.txt'"
}
# A dense network's int8 values, by GPTQ, in a file.
on_grid_once() { # NETWORK SEED FOLDER
  [ ! -e "$3.safetensors" ] || return 0
  local run import=true
  run=$(dense_of "$1" "$2")
  if [ "$1" = resnet20 ]; then
    import="rm -rf '$3-run' && '$program' import '$run' --config '$(config_of resnet20 "$2")' $(data resnet20) --out '$3-run'"
    run=$3-run
  fi
  echo "rm -rf '$3'; { $import && $one '$program' quantize '$run' --set 'quantize={algorithm: gptq$(covered "$1")}' --threads 1 --run-dir '$3' && $one '$program' export '$3' --format safetensors --only int8 --out '$3.safetensors'; } > '$3.txt' 2>&1 || cat '$3.txt'"
}
# A sparse run's masks stay.
longer_commands() {
  local network seed way section
  for network in $networks; do for seed in $seeds; do
    for way in longer observed learned; do
      missing "$network" "$seed" "$way" || continue
      case $way in
        longer) section= ;;
        *) section="--set 'quantize={algorithm: qat, scales: $way$(covered "$network")}'" ;;
      esac
      train_once "$(folder_of "$network" "$seed" "$way")-run" "'$(base_of "$network" "$seed")/config.yaml' --init-from '$(base_of "$network" "$seed")' --set 'sparsity={algorithm: static$(filter "$network")}' $(longer "$network") $section --seed $seed"
    done
  done; done
}
prune_once() { # RUN FOLDER NETWORK ALGORITHM [SECTION [CONFIGURATION]]
  [ -e "$2/prune.json" ] && return
  local more=
  [ "$4" = admm ] && more=', least_squares: true'
  { echo "sparsity: {algorithm: $4, sparsity: $one_shot_sparsity$more, $groups$(filter "$3")}"
    [ -z "${5:-}" ] || echo "quantize: {$5}"
    [ -z "${6:-}" ] || cat "$6"; } >"$2.yaml"
  local set=
  [ "$3" = resnet20 ] && set=$(data resnet20)
  echo "rm -rf '$2'; $one '$program' prune '$1' '$2.yaml' $set --set train.threads=1 --run-dir '$2' > '$2.txt' 2>&1 || cat '$2.txt'"
}
# Of ResNet-20, and of int8 values, there is a file, which has no configuration.
config_of() { # NETWORK SEED
  if [ "$1" = resnet20 ]; then
    echo "$results/quantize-resnet20.yaml"
  else
    echo "$(dense_of "$1" "$2")/config.yaml"
  fi
}
first_commands() {
  local network seed way folder config
  for network in $networks; do for seed in $seeds; do
    for way in nearest gptq; do
      missing "$network" "$seed" "$way" || continue
      quantize_once "$(base_of "$network" "$seed")" "$(folder_of "$network" "$seed" "$way")" "algorithm: $way$(covered "$network")"
    done
    for way in longer observed learned; do
      missing "$network" "$seed" "$way" || continue
      folder=$(folder_of "$network" "$seed" "$way")
      if [ $way = longer ]; then
        quantize_once "$folder-run" "$folder" "algorithm: gptq$(covered "$network")" --last
      else
        quantize_once "$folder-run" "$folder" "algorithm: qat, scales: $way$(covered "$network")" --last
      fi
    done
    # The trained file is the same whatever the seed.
    [ "$network" = resnet20 ] && [ "$seed" != "${seeds%% *}" ] && continue
    for way in $dense_ways; do
      missing "$network" "$seed" "$way" || continue
      folder=$(folder_of "$network" "$seed" "$way")
      config=
      [ "$network" = resnet20 ] && config=$(config_of resnet20 "$seed")
      case $way in
        *+gptq) prune_once "$(dense_of "$network" "$seed")" "$folder" "$network" "${way%+*}" "algorithm: gptq$(covered "$network")" "$config" ;;
        gptq,*) on_grid_once "$network" "$seed" "$folder-grid" ;;
        *) prune_once "$(dense_of "$network" "$seed")" "$folder-run" "$network" "${way%,*}" '' "$config" ;;
      esac
    done
  done; done
}
second_commands() {
  local network seed way folder
  for network in $networks; do for seed in $seeds; do for way in $dense_ways; do
    [[ $way == *,* ]] && missing "$network" "$seed" "$way" || continue
    folder=$(folder_of "$network" "$seed" "$way")
    if [[ $way == gptq,* ]]; then
      [ ! -e "$folder-grid.safetensors" ] ||
        prune_once "$folder-grid.safetensors" "$folder-run" "$network" "${way#*,}" '' "$(config_of "$network" "$seed")"
    elif [ -e "$folder-run/prune.json" ]; then
      quantize_once "$folder-run" "$folder" "algorithm: gptq$(covered "$network")"
    fi
  done; done; done
}
third_commands() {
  local network seed way folder
  for network in $networks; do for seed in $seeds; do for way in $dense_ways; do
    [[ $way == gptq,* ]] && missing "$network" "$seed" "$way" || continue
    folder=$(folder_of "$network" "$seed" "$way")
    [ ! -e "$folder-run/prune.json" ] || quantize_once "$folder-run" "$folder" "algorithm: nearest$(covered "$network")"
  done; done; done
}

run_all base_commands
run_all longer_commands
run_all first_commands
run_all second_commands
run_all third_commands

python3 - "$table" "$results" "$networks" "$seeds" "$ways" <<'PYTHON'
"""Notes the new runs in the table, and prints its means."""
import json, math, pathlib, sys

table, results = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
networks, seeds, ways = (argument.split() for argument in sys.argv[3:])
columns = ["network", "seed", "way", "float32_loss", "int8_loss", "float32_accuracy", "int8_accuracy"]
rows = [line.split("\t") for line in table.read_text().splitlines()[1:]] if table.exists() else []
known = {tuple(row[:3]) for row in rows}
for network in networks:
    for seed in seeds:
        for way in ways:
            folder = results / f"quantize-{network}-{way}-{seed}"
            if (network, seed, way) in known or not (folder / "quantize.json").exists():
                continue
            report = json.loads((folder / "quantize.json").read_text())
            last = [report[precision]["splits"][-1] for precision in ("float32", "int8")]
            # In one shot: against the dense network.
            for pruned in (folder / "prune.json", results / f"{folder.name}-run" / "prune.json"):
                if pruned.exists():
                    last[0] = json.loads(pruned.read_text())["before"]["splits"][-1]
            on_grid = results / f"{folder.name}-grid" / "quantize.json"
            if on_grid.exists():
                last[0] = json.loads(on_grid.read_text())["float32"]["splits"][-1]
            rows.append([network, seed, way] + [f"{split['loss']:.6g}" for split in last] +
                        [f"{split['accuracy']:.4f}" if "accuracy" in split else "" for split in last])
table.write_text("\n".join(["\t".join(columns)] + ["\t".join(row) for row in rows]) + "\n")

print("| network | way | seeds | float32 | int8 | worse by |\n|---|---|---|---|---|---|")
for network in networks:
    for way in ways:
        own = [row for row in rows if row[0] == network and row[2] == way]
        if not own:
            continue
        if network == "gpt":
            pairs = [(math.exp(float(row[3])), math.exp(float(row[4]))) for row in own]
            gaps, form, unit = [100 * (b / a - 1) for a, b in pairs], "{:.3f}", "%"
        else:
            pairs = [(100 * float(row[5]), 100 * float(row[6])) for row in own]
            gaps, form, unit = [a - b for a, b in pairs], "{:.2f} %", "points"
        mean = lambda values: sum(values) / len(values)
        spread = f" ({min(gaps):.2f} to {max(gaps):.2f})" if len(gaps) > 1 else ""
        print(f"| {network} | {way} | {len(own)} | {form.format(mean([a for a, _ in pairs]))} | "
              f"{form.format(mean([b for _, b in pairs]))} | {mean(gaps):.2f} {unit}{spread} |")
PYTHON
