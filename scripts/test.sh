#!/usr/bin/env bash
# Installs what is missing, builds everything with warnings as errors, and runs all tests.
# usage: scripts/test.sh [options of ctest, as -R checkpoint]
# LACUNA_BUILD_DIR is where to build (default: build/release); LACUNA_DATA_DIR is the folder with
# MNIST's files, without which the tests on MNIST are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${LACUNA_BUILD_DIR:-build/release}

scripts/install_dependencies.sh
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_DEVELOPER=ON \
  --log-level=NOTICE
cmake --build "$build" --parallel "$(nproc)"

# Tests run side by side, so threads that wait must not spin.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" "$@"
