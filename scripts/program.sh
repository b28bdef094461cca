# Sourced by the scripts that train: the program, built where it is missing.
build=${LACUNA_BUILD_DIR:-build/release}
program=$build/lacuna
if [ ! -x "$program" ]; then
  scripts/install_dependencies.sh
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release --log-level=NOTICE
  cmake --build "$build" --target lacuna_program --parallel "$(nproc)"
fi
