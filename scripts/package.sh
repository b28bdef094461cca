#!/usr/bin/env bash
# Builds Debian packages of the program, the shared library, its headers, the Python module and the MPI
# plugin, and prints where they are.
# usage: scripts/package.sh
# LACUNA_BUILD_DIR is where to build (default: build/package).
set -euo pipefail
[ $# -eq 0 ] || { echo "usage: scripts/package.sh" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${LACUNA_BUILD_DIR:=build/package}"
source scripts/build.sh

scripts/install_dependencies.sh --packages
configure -DLACUNA_UNITY=ON -DBUILD_SHARED_LIBS=ON -DLACUNA_HDF5_ARCHIVE=OFF -DLACUNA_PYTHON=ON \
  -DCMAKE_INSTALL_PREFIX=/usr
build_targets
"$build/lacuna" info
(cd "$build" && cpack -G DEB)
ls -l "$build"/*.deb
