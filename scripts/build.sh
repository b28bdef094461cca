# Sourced by the scripts that build: where, and how that folder is configured.
build=${LACUNA_BUILD_DIR:-build/release}

# A new folder is configured for the library and the program alone; an existing one keeps its options,
# except those that are given.
configure() { # [-D…]
  local parts=()
  if [ ! -e "$build/CMakeCache.txt" ]; then
    parts=(-DLACUNA_BUILD_TESTS=OFF -DLACUNA_BUILD_BENCHMARKS=OFF -DLACUNA_BUILD_EXAMPLES=OFF)
  fi
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release --log-level=NOTICE \
    ${parts[@]+"${parts[@]}"} "$@"
}

build_targets() { # TARGET... (none: all)
  cmake --build "$build" --parallel "$(nproc)" ${1+--target "$@"}
}
