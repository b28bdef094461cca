#!/usr/bin/env bash
# Fuzzes the readers of foreign files (fuzz/): one target after the other, until each has reached its number of
# executions or its time is over. Prints a line for the table of docs/development/robustness.md for each.
# Inputs that find a fault are kept in build/fuzz/found/TARGET; once the fault is corrected, move the input to
# fuzz/corpus/TARGET. The fuzzer's own corpus is kept in build/fuzz/grown/TARGET for the next time.
# usage: scripts/fuzz.sh [TARGET...] [--runs N] [--seconds S]
#   --runs: executions of each target; default 1,000,000, and 200,000 of those that use HDF5 or an image library.
#   --seconds: time limit of each target; default: none.
# LACUNA_FUZZ_PROGRAMS: a folder of targets that are already built; without it, they are built (clang, preset `fuzz`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs= seconds=0 targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    -*) echo "fuzz: unknown option $1" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
programs=${LACUNA_FUZZ_PROGRAMS:-}
if [ -z "$programs" ]; then
  cmake --preset fuzz --log-level=NOTICE
  cmake --build --preset fuzz --parallel "$(nproc)"
  programs=build/fuzz/fuzz
fi
if [ ${#targets[@]} -eq 0 ]; then
  for source in fuzz/targets/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi

is_slow() { # TARGET: through HDF5 or an image library
  case $1 in hdf5_data | checkpoint | quantized_state | masks | png | jpeg | webp | gif) return 0 ;; *) return 1 ;; esac
}

longest_of() { # TARGET: bytes of an input; what takes time for each byte gets shorter ones
  case $1 in override) echo 512 ;; run_data | text) echo 2048 ;; *) echo 8192 ;; esac
}

# Large arrays that a header promises are allocated by the library's own limits; a library of others
# that loses memory (HDF5, at damaged files) is no finding of ours.
export ASAN_OPTIONS=allocator_may_return_null=1:handle_abort=1:quarantine_size_mb=4
export OMP_NUM_THREADS=1
total_found=0
for target in "${targets[@]}"; do
  program=$programs/fuzz_$target
  [ -x "$program" ] || { echo "fuzz: there is no target $target" >&2; exit 2; }
  grown=build/fuzz/grown/$target found=build/fuzz/found/$target log=build/fuzz/$target.log
  mkdir -p "$grown" "$found"
  wanted=$runs leaks=1
  if is_slow "$target"; then wanted=${runs:-200000} leaks=0; fi
  leak_check=detect_leaks=$leaks
  wanted=${wanted:-1000000}
  begun=$(date +%s) done=0 findings=0
  while [ "$done" -lt "$wanted" ]; do
    passed=$(($(date +%s) - begun)) options=()
    if [ "$seconds" -gt 0 ]; then
      [ "$passed" -lt "$seconds" ] || break
      options+=(-max_total_time=$((seconds - passed)))
    fi
    code=0
    ASAN_OPTIONS=$ASAN_OPTIONS:$leak_check "$program" "$grown" "fuzz/corpus/$target" -runs=$((wanted - done)) -max_len="$(longest_of "$target")" -timeout=60 \
      -entropic=0 -detect_leaks=$leaks -malloc_limit_mb=30000 -rss_limit_mb=4000 \
      -artifact_prefix="$found/" -print_final_stats=1 "${options[@]}" > "$log" 2>&1 || code=$?
    step=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    done=$((done + ${step:-0}))
    if [ "$code" -ne 0 ]; then
      findings=$((findings + 1))
      grep -a -m 3 'fuzz: \|SUMMARY\|ERROR: ' "$log" >&2 || tail -n 5 "$log" >&2
      [ "$findings" -lt 20 ] || break
    fi
  done
  passed=$(($(date +%s) - begun))
  printf '| %s | %d | %d | %d |\n' "$target" "$done" $((done / (passed > 0 ? passed : 1))) "$findings"
  total_found=$((total_found + findings))
done
[ "$total_found" -eq 0 ]
