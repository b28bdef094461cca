#!/usr/bin/env python3
"""The model of docs/development/scaling.md: seconds of a training step with N machines, for dense and sparse networks.

usage: scripts/scaling.py [--compute SECONDS] [--backward SHARE] [--parameters N] [--dense N]
       [--sparsity S] [--tensors N] [--gathers N] [--statistics BYTES] [--latency SECONDS]
       [--overhead SECONDS] [--gbits RATE] [--memory BYTES_A_SECOND]
Without arguments: the tables of docs/development/scaling.md, of networks and models named there. Every number that it
prints is predicted from its arguments; none is measured.
"""
import argparse

# Seconds until a message is there, seconds that a machine is busy with each, and Gbit/s (assumptions).
NETWORKS = {"25 GbE": (30e-6, 5e-6, 25.0), "InfiniBand 200": (2e-6, 0.7e-6, 200.0)}
# A step's seconds on one machine (an assumption), parameters in sparse layers, other ones, tensors, how
# often all gather numbers (twice for each of 53 normalizations, for the loss, and for signals; of a GPT
# also for the tokens), and the bytes of a machine's own ones: four double-precision numbers for each of
# 26560 channels, and a count for each normalization.
MODELS = {
    "ResNet-50, 32 images per machine": (0.80, 23_454_912, 2_102_120, 161, 2 * 53 + 2,
                                       8 * (4 * 26_560 + 53)),
    "GPT of 124 M parameters, 8 × 1024 tokens per machine": (6.0, 84_934_656, 39_504_384, 148, 3, 48),
}
# Bytes per second that a process reads and writes while it packs, adds and unpacks (an assumption).
MEMORY = 10e9


def buckets_of(machines, floats, tensors):
    """As the trainer fills them: of 65536 floats at least and of 16384 for each process, or of an
    eighth of all, where that is less, but of 4096 at least and of 1024 for each process."""
    bucket = min(max(65536, 16384 * machines), max(floats // 8, 4096, 1024 * machines))
    return max(1, min(tensors, -(-round(floats) // bucket)))


def exchange(machines, floats, tensors, latency, overhead, gbits):
    """Reduce-scatter and allgather by direct messages: each machine sends (N - 1) / N of the array
    twice, in N - 1 messages for each bucket, and gets as many."""
    if machines == 1:
        return 0.0
    buckets = buckets_of(machines, floats, tensors)
    seconds = 2 * (machines - 1) / machines * 4 * floats / (gbits * 1e9 / 8)
    return seconds + 2 * buckets * (latency + 2 * (machines - 1) * overhead)


def hidden(machines, compute, backward, floats, tensors, latency, overhead, gbits):
    """Of the exchange, what goes on behind backward: the last bucket cannot begin before that ends."""
    sent = exchange(machines, floats, tensors, latency, overhead, gbits)
    buckets = buckets_of(machines, floats, tensors)
    return min(sent * (buckets - 1) / buckets, backward * compute)


def handled(machines, floats, memory):
    """A gradient is packed, its own part of all is added up, the sum placed and unpacked: 7 times its
    bytes are read or written, by the process itself."""
    return 0.0 if machines == 1 else 7 * 4 * floats / memory


def rounds_of(machines):
    """Messages one after the other until all have heard of all, by doubling."""
    return (machines - 1).bit_length()


def gathered(machines, gathers, statistics, latency, overhead, gbits, gather=None):
    """All wait for each other's numbers, which are joined by pairs, pairs of pairs, …: a message each
    time, of a machine's own numbers (`statistics`: their bytes in a step). `gather`: seconds that were
    measured for one of few numbers. (Of machines whose number is no power of two all N - 1 others'
    numbers travel.)"""
    if machines == 1:
        return 0.0
    each = rounds_of(machines) * (latency + 2 * overhead) if gather is None else gather
    return gathers * each + rounds_of(machines) * statistics / (gbits * 1e9 / 8)


def step(machines, compute, backward, floats, tensors, gathers, statistics, latency, overhead, gbits,
         memory, gather=None):
    """Seconds of a step, of these what comes with several machines, and the efficiency."""
    sent = exchange(machines, floats, tensors, latency, overhead, gbits)
    saved = hidden(machines, compute, backward, floats, tensors, latency, overhead, gbits)
    added = (sent - saved + handled(machines, floats, memory) +
             gathered(machines, gathers, statistics, latency, overhead, gbits, gather))
    return compute + added, added, compute / (compute + added)


# What a step takes at these sparsities of what it takes dense (an assumption).
SHARE_OF_DENSE = {0: 1.0, 0.5: 1.0, 0.9: 0.35, 0.99: 0.15}


def table(name, compute, sparse, dense, tensors, gathers, statistics, backward, sparsities):
    print(f"{name}, {compute} s per dense step on one machine:\n")
    print("| network | machines | " + " | ".join(
        ("dense" if s == 0 else f"{100 * s:g} %") for s in sparsities) + " |")
    print("|---|---|" + "---|" * len(sparsities))
    for network, costs in NETWORKS.items():
        for machines in (8, 64, 512):
            cells = []
            for s in sparsities:
                floats = round(sparse * (1 - s)) + dense
                seconds, added, efficiency = step(machines, compute * SHARE_OF_DENSE[s], backward,
                                                  floats, tensors, gathers, statistics, *costs, MEMORY)
                cells.append(f"{1000 * added:.1f} ms, {100 * efficiency:.0f} %")
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
    parser.add_argument("--gathers", type=int, default=2,
                        help="numbers that all wait for in a step: 2, and 2 for each batch_norm")
    parser.add_argument("--statistics", type=float, default=0.0,
                        help="bytes of a machine's numbers in these: 32 for each channel")
    parser.add_argument("--latency", type=float, default=30e-6)
    parser.add_argument("--overhead", type=float, default=5e-6, help="of a message, in a machine")
    parser.add_argument("--gbits", type=float, default=25.0)
    parser.add_argument("--memory", type=float, default=MEMORY, help="bytes per second of a process")
    a = parser.parse_args()
    if a.compute is None:
        for name, numbers in MODELS.items():
            table(name, *numbers, a.backward, (0, 0.5, 0.9, 0.99))
        return
    floats = round(a.parameters * (1 - a.sparsity)) + a.dense
    for machines in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        seconds, added, efficiency = step(machines, a.compute, a.backward, floats, a.tensors,
                                          a.gathers, a.statistics, a.latency, a.overhead, a.gbits,
                                          a.memory)
        print(f"{machines:4d} machines: {seconds:.4f} s per step, {1000 * added:.2f} ms more, "
              f"{100 * efficiency:.1f} % efficiency")


if __name__ == "__main__":
    main()
