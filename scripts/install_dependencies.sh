#!/usr/bin/env bash
# Installs the Debian packages that lacuna needs; does nothing if all are installed. quickstart.sh, test.sh, bench.sh,
# package.sh, docs.sh and peers.sh call this script; scripts that train call it if the program is not built yet.
# usage: scripts/install_dependencies.sh [--benchmarks | --tests | --packages | --python | --docs | --peers]
# Without an option: packages to build the program. In addition, --benchmarks installs those to build benchmarks,
# --tests those to build and run tests (benchmarks included), --packages those to make Debian packages, and --python
# those to build the Python module. --docs installs only what the site needs, and --peers only PyTorch and Matplotlib,
# for peers.sh.
set -euo pipefail

# ocl-icd-opencl-dev: the CMake package of libdnnl-dev asks for OpenCL, though lacuna uses none.
# python3-torch is 121 MB to download and 503 MB installed, with all that it needs. It takes any BLAS, also
# the reference, which is some 20 times slower, and Debian prefers an OpenBLAS whose threads disturb PyTorch's.
packages=(g++ cmake ninja-build libeigen3-dev libyaml-cpp-dev libspdlog-dev libfmt-dev
  libhdf5-dev libdnnl-dev ocl-icd-opencl-dev libhwy-dev libcli11-dev zlib1g-dev
  nlohmann-json3-dev libpng-dev libjpeg-dev libwebp-dev libgif-dev libonnx-dev libprotobuf-dev)
of_benchmarks=(libbenchmark-dev)
of_tests=(libgtest-dev libgmock-dev python3-h5py python3-numpy python3-yaml python3-pil
  python3-onnx libopencv-dnn-dev chromium libopenmpi-dev openmpi-bin doxygen
  python3-pytest python3-scipy python3-pandas mypy jupyter-nbconvert python3-ipykernel
  python3-matplotlib python3-torch libopenblas0-openmp zsh fish pkgconf clang)
of_python=(pybind11-dev python3-dev python3-numpy)

fail() {
  printf 'install_dependencies: %s\n' "$@" >&2
  exit 1
}

case "$*" in
  '') ;;
  --benchmarks) packages+=("${of_benchmarks[@]}") ;;
  --packages) packages+=(dpkg-dev file libopenmpi-dev "${of_python[@]}") ;;
  --python) packages+=("${of_python[@]}" python3-venv python3-wheel) ;;
  --docs) packages=(doxygen python3) ;;
  --peers) packages=(python3-torch libopenblas0-openmp python3-matplotlib) ;;
  --tests) packages+=("${of_benchmarks[@]}" "${of_tests[@]}" "${of_python[@]}") ;;
  *) fail "usage: scripts/install_dependencies.sh [--benchmarks | --tests | --packages | --python | --docs | --peers]" ;;
esac

if [ -n "${LACUNA_SKIP_INSTALL:-}" ]; then exit 0; fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "this is no Debian-like system (there is no apt-get)." \
    "Install what corresponds to these Debian packages, then set LACUNA_SKIP_INSTALL=1:" \
    "${packages[*]}"
fi

installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  if [[ $installed != *" installed:$package "* ]]; then missing+=("$package"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "these packages are missing, and installing them needs root or sudo:" "${missing[*]}" \
      "As root: apt-get install ${missing[*]}"
  as_root=(sudo)
  if [ ! -t 0 ]; then as_root+=(-n); fi # nobody is there to type a password
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  if ! ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    "$@" >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    fail "apt-get $1 failed; see above. Missing: ${missing[*]}"
  fi
}
echo "Installing ${missing[*]}"
apt update
apt install -y --no-install-recommends "${missing[@]}"
