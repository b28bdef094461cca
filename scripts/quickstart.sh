#!/usr/bin/env bash
# From a fresh clone to a trained sparse network: installs what is missing, builds the program,
# trains configs/quickstart.yaml and prints where the results are.
# usage: scripts/quickstart.sh [options of `lacuna train`, as --set sparsity.sparsity=0.95]
# LACUNA_BUILD_DIR is where to build (default: build/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/build.sh

scripts/install_dependencies.sh
echo "Building in $build (the first time takes a few minutes)"
configure -DLACUNA_UNITY=ON -DLACUNA_KERNELS=machine
build_targets lacuna_program

run=runs/quickstart
number=1
while [ -e "$run" ]; do
  number=$((number + 1))
  run=runs/quickstart-$number
done
"$build/lacuna" train configs/quickstart.yaml --run-dir "$run" "$@"

cat <<END

Try next:
  $build/lacuna inspect $run
  $build/lacuna train configs/quickstart.yaml --run-dir runs/mine --set sparsity.sparsity=0.98
END
