#!/usr/bin/env bash
# Simulates two machines by two network namespaces on this one, joined by a virtual cable with a delay and a rate
# (`tc netem`). Trains with one process in each, and prints how much of the exchange of gradients is hidden behind the
# backward pass, and how long the same exchange takes by itself.
# usage: scripts/network.sh CONFIG [--rate 1gbit] [--delay 50us] [--steps N] [--set PATH=VALUE]...
# Needs root, iproute2, and one core per process. If the kernel has no netem, `tc tbf` limits the rate, with tokens for
# two packets at once, and the delay is that of the virtual cable, which is measured and printed. If it has neither, the
# script reports this, and prints what the model of docs/development/scaling.md predicts from measured computation
# (scripts/scaling_check.py). LACUNA_BUILD_DIR is where the program and bench_network are (default: build/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(realpath "${LACUNA_BUILD_DIR:-build/release}")

fail() {
  printf 'network: %s\n' "$@" >&2
  exit 2
}
config=
rate=1gbit
delay=50us
steps=40
sets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --rate) rate=${2:?"--rate needs a rate of tc, as 1gbit"}; shift 2 ;;
    --delay) delay=${2:?"--delay needs a time of tc, as 50us"}; shift 2 ;;
    --steps) steps=${2:?"--steps needs a number"}; shift 2 ;;
    --set) sets+=(--set "${2:?"--set needs PATH=VALUE"}"); shift 2 ;;
    -*) fail "unknown option $1" ;;
    *) config=$1; shift ;;
  esac
done
[ -n "$config" ] || fail "give a CONFIG"
[ "$(id -u)" = 0 ] || fail "network namespaces need root"
for file in "$build/lacuna" "$build/bench/bench_network"; do
  [ -x "$file" ] || fail "there is no $file; build the targets lacuna_program and bench_network"
done

one=lacuna-$$-a
two=lacuna-$$-b
work=$(mktemp -d)
clean() {
  ip netns del "$one" 2>/dev/null || true
  ip netns del "$two" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
ip netns add "$one"
ip netns add "$two"
ip link add lacuna0 netns "$one" type veth peer name lacuna0 netns "$two"
address=1
made="netem delay $delay rate $rate"
for namespace in "$one" "$two"; do
  ip -n "$namespace" link set lo up
  ip -n "$namespace" addr add "10.77.0.$address/24" dev lacuna0
  ip -n "$namespace" link set lacuna0 up
  if ! tc -n "$namespace" qdisc add dev lacuna0 root netem delay "$delay" rate "$rate" 2>/dev/null; then
    made="tbf rate $rate, and the cable's own delay: this kernel has no netem"
    tc -n "$namespace" qdisc add dev lacuna0 root tbf rate "$rate" burst 4000 latency 100ms || made=
  fi
  if [ -z "$made" ]; then
    echo "network     this machine makes none of $rate (tc netem, tc tbf): by the model"
    clean
    exec scripts/scaling_check.py "$config" --steps "$steps" --rate "$rate" --delay "$delay" \
      ${sets[@]+"${sets[@]}"}
  fi
  address=$((address + 1))
done
echo "network     each way $made"

# mpirun reaches the other machine by this instead of ssh: agent HOST COMMAND…
cat >"$work/agent" <<AGENT
#!/bin/bash
shift
exec ip netns exec $two unshare --uts bash -c 'hostname lacuna-b; exec taskset -c 1 bash -c "\$*"' _ "\$@"
AGENT
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
two_machines() {
  ip netns exec "$one" unshare --uts bash -c 'hostname lacuna-a; exec taskset -c 0 "$@"' _ \
    mpirun --host 10.77.0.1:1,10.77.0.2:1 -np 2 --bind-to none --mca pml ob1 --mca plm_rsh_agent "$work/agent" \
    --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "$@"
}

# The run, of which each step is logged; then the same exchange by itself, nothing computed meanwhile.
two_machines "$build/lacuna" train "$config" --run-dir "$work/run" --quiet \
  ${sets[@]+"${sets[@]}"} --set "train.steps=$steps" --set train.log_every=1 \
  --set "train.eval_every=$steps" --set "train.checkpoint={every: $steps}" >"$work/out" ||
  fail "the run failed: $(tail -5 "$work/out")"
floats=$(scripts/step_numbers.py "$work/run" floats)
two_machines "$build/bench/bench_network" --exchange "$floats" >"$work/network.json" ||
  fail "bench_network failed"
scripts/step_numbers.py "$work/run" hidden "$work/network.json"
