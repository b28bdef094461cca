#!/usr/bin/env bash
# Installs what is missing, builds with optimization, and runs one benchmark.
# usage: scripts/bench.sh NAME [options of the benchmark, as --help or --threads 2]
# Without a name: lists the benchmarks. LACUNA_BUILD_DIR is where to build (default: build/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/build.sh

names=$(sed -nE 's/^(lacuna_bench\(|add_executable\(bench_)([a-z_0-9]+).*/\2/p' bench/CMakeLists.txt)
if [ $# -eq 0 ]; then
  printf 'usage: scripts/bench.sh NAME [options]; the benchmarks are:\n%s\n' "$names"
  exit 2
fi
name=$1
shift
if ! grep -qx -- "$name" <<<"$names"; then
  printf 'bench: there is no benchmark "%s"; there are:\n%s\n' "$name" "$names" >&2
  exit 2
fi

scripts/install_dependencies.sh --benchmarks
configure -DLACUNA_BUILD_BENCHMARKS=ON
build_targets lacuna_program "bench_$name"
"$build/lacuna" info
"$build/bench/bench_$name" "$@"
