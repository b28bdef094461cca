#!/usr/bin/env bash
# Trains with several processes, and starts them again from the last good checkpoint if one is lost
# (docs/guides/cluster.md). Options before -- are passed to mpirun, those after it to lacuna.
# usage: scripts/cluster.sh [--restarts N] [--wait SECONDS] [MPIRUN OPTIONS] -- train CONFIG --run-dir DIR [OPTIONS]
# The variables MPIRUN and LACUNA name the programs (default: mpirun, lacuna). --wait: seconds before a restart
# (default 5). The exit code is that of the last start. There is no restart after code 0 (done), 2 (wrong usage or
# configuration), 126 or 127 (no program), or a signal to stop; other codes lead to at most N restarts (default 3).
set -euo pipefail

restarts=3
pause=5
launch=()
fail() {
  printf 'cluster: %s\n' "$@" >&2
  exit 2
}
number() { # OPTION VALUE
  case "$2" in
    '' | *[!0-9]*) fail "$1 needs a whole number, found '$2'" ;;
    ??????????*) fail "$1 needs a whole number below a billion, found '$2'" ;;
  esac
}
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
    --restarts) number "$1" "${2:-}"; restarts=$((10#$2)); shift 2 ;;
    --wait) number "$1" "${2:-}"; pause=$((10#$2)); shift 2 ;;
    *) launch+=("$1"); shift ;;
  esac
done
[ "${1:-}" = -- ] || fail "there is no --, behind which lacuna's command line begins"
shift
[ "${1:-}" = train ] || fail "only 'train' starts again; found '${1:-nothing}'"

run_dir=
resumes=
for ((i = 1; i <= $#; ++i)); do
  case "${!i}" in
    --run-dir | --out) next=$((i + 1)); run_dir=${!next:-} ;;
    --run-dir=* | --out=*) run_dir=${!i#--*=} ;;
    --resume) resumes=yes ;;
  esac
done
[ -n "$run_dir" ] || fail "give --run-dir, the run to continue"
if [ -z "$resumes" ] && [ -e "$run_dir/config.yaml" ]; then
  fail "'$run_dir' holds a run already; add --resume to continue it, or choose another folder with --run-dir"
fi

# A signal to stop goes to all as SIGUSR1, which mpirun hands on; after SIGTERM it would kill them
# before they have saved.
pid=
stopped=
stop() {
  stopped=yes
  [ -z "$pid" ] || kill -USR1 "$pid" 2>/dev/null || true
}
trap stop TERM INT HUP USR1

for ((start = 0; ; ++start)); do
  arguments=("$@")
  # A run that was lost before it had a configuration begins again; one that has it is of this job.
  if [ -z "$resumes" ] && [ "$start" -gt 0 ] && [ -e "$run_dir/config.yaml" ]; then
    arguments+=(--resume)
  fi
  "${MPIRUN:-mpirun}" ${launch[@]+"${launch[@]}"} "${LACUNA:-lacuna}" "${arguments[@]}" &
  pid=$!
  [ -z "$stopped" ] || stop # it came before there was a job
  code=0
  wait "$pid" || code=$?
  while kill -0 "$pid" 2>/dev/null; do # a signal ended the wait
    code=0
    wait "$pid" || code=$?
  done
  pid=
  case "$code" in
    0 | 2 | 126 | 127 | 129 | 130 | 143) exit "$code" ;;
  esac
  if [ -n "$stopped" ] || [ "$start" -ge "$restarts" ]; then exit "$code"; fi
  echo "cluster: the job ended with code $code; start $((start + 2)) of $((restarts + 1)) in $pause s" >&2
  for ((second = 0; second < pause; ++second)); do
    if [ -n "$stopped" ]; then exit "$code"; fi
    sleep 1 || true # a signal to the whole group ends it
  done
  if [ -n "$stopped" ]; then exit "$code"; fi
done
