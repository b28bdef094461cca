# Sourced by the scripts that train: the program, built where it is missing.
source scripts/build.sh
program=$build/lacuna
if [ ! -x "$program" ]; then
  scripts/install_dependencies.sh
  configure
  build_targets lacuna_program
fi
