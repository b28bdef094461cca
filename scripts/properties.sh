#!/usr/bin/env bash
# Trains random small configurations and checks what must hold for each (tests/properties/run.py):
# threads, resumption, evaluation, export and import, untouched inputs, numbers at their extremes.
# usage: scripts/properties.sh [--count N] [--seed S] [other options of run.py; --help lists them]
# LACUNA_BUILD_DIR is where to build (default: build/release). LACUNA_PROPERTIES_FOLDER is where to work
# (default: a temporary folder, which is removed if everything holds).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/build.sh
configure
build_targets lacuna_program
folder=${LACUNA_PROPERTIES_FOLDER:-}
if [ -n "$folder" ]; then
  exec /usr/bin/python3 -B tests/properties/run.py "$build/lacuna" "$folder" "$@"
fi
folder=$(mktemp -d)
if /usr/bin/python3 -B tests/properties/run.py "$build/lacuna" "$folder" "$@"; then
  rm -rf "$folder"
else
  echo "what failed is in $folder" >&2
  exit 1
fi
