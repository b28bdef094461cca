#!/usr/bin/env bash
# Measures training steps of PyTorch and lacuna side by side, on one thread and on all, and writes
# docs/measurements/peers.tsv, the tables of README.md and docs/measurements/peers.md, and README's picture.
# usage: scripts/peers.sh [options of bench/peers/peers.py, as --minutes 5]    (6 to 10 minutes)
#        scripts/peers.sh --draw      tables and picture again, from the measurements that are there
# Installs Debian's python3-torch and python3-matplotlib where they are missing; LACUNA_SKIP_INSTALL=1 skips that.
# The machine must have nothing else to do. LACUNA_BUILD_DIR is where to build (default: build/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/install_dependencies.sh --peers
if [ "${1:-}" != --draw ]; then
  source scripts/program.sh
  python3 -B bench/peers/peers.py --program "$program" "$@"
fi
/usr/bin/python3 -B bench/peers/publish.py
