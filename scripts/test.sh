#!/usr/bin/env bash
# Installs what is missing, builds everything with warnings as errors, and runs all tests.
# usage: scripts/test.sh [options of ctest, as -R checkpoint]
# LACUNA_BUILD_DIR is where to build (default: build/test); LACUNA_DATA_DIR is a folder with mnist/,
# text/ and cifar-10-batches-bin/, or MNIST's own: tests skip what they do not find there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${LACUNA_BUILD_DIR:=build/test}"
source scripts/build.sh

scripts/install_dependencies.sh --tests
configure -DLACUNA_DEVELOPER=ON -DLACUNA_UNITY=ON -DLACUNA_BUILD_TESTS=ON \
  -DLACUNA_BUILD_BENCHMARKS=ON -DLACUNA_BUILD_EXAMPLES=ON -DLACUNA_PYTHON=ON
build_targets

# Tests run side by side, so threads that wait must not spin.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" "$@"
