#!/usr/bin/env python3
"""The model of docs/scaling.md: seconds of a training step by N machines, dense beside sparse.

usage: scripts/scaling.py [--compute SECONDS] [--backward SHARE] [--parameters N] [--dense N]
       [--sparsity S] [--tensors N] [--latency SECONDS] [--overhead SECONDS] [--gbits RATE]
Without arguments: the tables of docs/scaling.md, of networks and models named there. Every number that it
prints is predicted from its arguments; none is measured.
"""
import argparse

# Seconds until a message is there, seconds that a machine is busy with each, and Gbit/s (assumptions).
NETWORKS = {"25 GbE": (30e-6, 5e-6, 25.0), "InfiniBand 200": (2e-6, 0.7e-6, 200.0)}
# A step's seconds on one machine (an assumption), parameters in sparse layers, other ones, tensors.
MODELS = {
    "ResNet-50, 32 images a machine": (0.80, 23_454_912, 2_102_120, 161),
    "GPT of 124 M, 8 x 1024 tokens a machine": (6.0, 84_934_656, 39_504_384, 148),
}


def buckets_of(machines, floats, tensors):
    """As the trainer fills them: of 65536 floats at least, of 16384 for each process."""
    return max(1, min(tensors, -(-floats // max(65536, 16384 * machines))))


def exchange(machines, floats, tensors, latency, overhead, gbits):
    """Reduce-scatter and allgather by direct messages: each machine sends (N - 1) / N of the array
    twice, in N - 1 messages for each bucket, and gets as many."""
    if machines == 1:
        return 0.0
    buckets = buckets_of(machines, floats, tensors)
    seconds = 2 * (machines - 1) / machines * 4 * floats / (gbits * 1e9 / 8)
    return seconds + 2 * buckets * (latency + 2 * (machines - 1) * overhead)


def step(machines, compute, backward, floats, tensors, latency, overhead, gbits):
    """Seconds of a step, those that are waited for after backward, and the efficiency."""
    sent = exchange(machines, floats, tensors, latency, overhead, gbits)
    # The last bucket cannot begin before backward ends.
    buckets = buckets_of(machines, floats, tensors)
    hidden = min(sent * (buckets - 1) / buckets, backward * compute)
    waited = sent - hidden
    return compute + waited, waited, compute / (compute + waited)


# What a step takes at these sparsities of what it takes dense (an assumption).
SHARE_OF_DENSE = {0: 1.0, 0.5: 1.0, 0.9: 0.35, 0.99: 0.15}


def table(name, compute, sparse, dense, tensors, backward, sparsities):
    print(f"{name}, {compute} s a dense step on one machine\n")
    print("| network | machines | " + " | ".join(
        ("dense" if s == 0 else f"{100 * s:g} %") for s in sparsities) + " |")
    print("|---|---|" + "---|" * len(sparsities))
    for network, costs in NETWORKS.items():
        for machines in (8, 64, 512):
            cells = []
            for s in sparsities:
                floats = round(sparse * (1 - s)) + dense
                seconds, waited, efficiency = step(
                    machines, compute * SHARE_OF_DENSE[s], backward, floats, tensors, *costs)
                cells.append(f"{1000 * waited:.1f} ms, {100 * efficiency:.0f} %")
            print(f"| {network} | {machines} | " + " | ".join(cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compute", type=float, help="seconds of a step on one machine")
    parser.add_argument("--backward", type=float, default=0.6, help="share of it in backward")
    parser.add_argument("--parameters", type=int, default=0, help="in sparse layers")
    parser.add_argument("--dense", type=int, default=0, help="other parameters")
    parser.add_argument("--sparsity", type=float, default=0.9)
    parser.add_argument("--tensors", type=int, default=100)
    parser.add_argument("--latency", type=float, default=30e-6)
    parser.add_argument("--overhead", type=float, default=5e-6, help="of a message, in a machine")
    parser.add_argument("--gbits", type=float, default=25.0)
    a = parser.parse_args()
    if a.compute is None:
        for name, (compute, sparse, dense, tensors) in MODELS.items():
            table(name, compute, sparse, dense, tensors, a.backward, (0, 0.5, 0.9, 0.99))
        return
    floats = round(a.parameters * (1 - a.sparsity)) + a.dense
    for machines in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        seconds, waited, efficiency = step(machines, a.compute, a.backward, floats, a.tensors,
                                           a.latency, a.overhead, a.gbits)
        print(f"{machines:4d} machines: {seconds:.4f} s a step, {1000 * waited:.2f} ms waited, "
              f"{100 * efficiency:.1f} % efficiency")


if __name__ == "__main__":
    main()
