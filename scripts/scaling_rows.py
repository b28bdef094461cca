#!/usr/bin/env python3
"""Simulates a training step of layers that are larger than one machine.

Compares data parallel training, in which each machine holds all weights, with layers that are partitioned by rows
(docs/development/scaling.md).

usage: scripts/scaling_rows.py [--machines P] [--layers N] [--tokens B] [--density D] [--chunks K]
       [--rate FLOP_A_SECOND] [--memory BYTES] [--bytes-per-nonzero N]
Prints docs/development/scaling.md's tables, which are those of the default values. Nothing is measured: computing and
networks are assumptions. lacuna has no partitioned layers.
"""
import argparse
import heapq
import itertools

import scaling

COMPUTE, NETWORK = range(2)


class Step:
    """What a machine does in a step: tasks of a processor and a network card, each of which does one at
    a time, the one that could begin first. All machines do the same at the same time."""

    def __init__(self):
        self.tasks = []

    def add(self, resource, seconds, after=()):
        self.tasks.append((resource, seconds, [task for task in after if task is not None]))
        return len(self.tasks) - 1

    def run(self):
        """Seconds until all is done."""
        waits = [len(after) for _, _, after in self.tasks]
        followers = [[] for _ in self.tasks]
        for task, (_, _, after) in enumerate(self.tasks):
            for before in after:
                followers[before].append(task)
        ready = [[], []]  # by resource: tasks in the order in which they could begin
        busy = [False, False]
        order = itertools.count()
        ends = []  # of tasks that run
        now = 0.0

        def make_ready(task):
            heapq.heappush(ready[self.tasks[task][0]], (next(order), task))

        for task, number in enumerate(waits):
            if number == 0:
                make_ready(task)
        while any(ready) or ends:
            for resource in (COMPUTE, NETWORK):
                if ready[resource] and not busy[resource]:
                    _, task = heapq.heappop(ready[resource])
                    busy[resource] = True
                    heapq.heappush(ends, (now + self.tasks[task][1], task))
            now, done = heapq.heappop(ends)
            busy[self.tasks[done][0]] = False
            for task in followers[done]:
                waits[task] -= 1
                if waits[task] == 0:
                    make_ready(task)
        return now


class Stack:
    """Sparse layers of one width, one behind the other, trained on so many tokens a step."""

    def __init__(self, width, density, layers, tokens, machines, rate):
        self.width, self.layers, self.tokens, self.machines = width, layers, tokens, machines
        self.nonzeros = round(density * width * width)  # of a layer
        # A machine's part of one layer's forward pass: all rows for its tokens, or its rows for all.
        self.forward = 2 * self.nonzeros * tokens / machines / rate

    def data_memory(self, of_nonzero):
        """Bytes in each machine: weights with states, and what layers have been given, of its tokens."""
        return self.layers * (of_nonzero * self.nonzeros + 4 * self.tokens / self.machines * self.width)

    def rows_memory(self, of_nonzero):
        """The same of its rows, and of all tokens: the weight's gradient asks for the whole input."""
        return self.layers * (of_nonzero * self.nonzeros / self.machines + 4 * self.tokens * self.width)


def messages(machines, size, latency, overhead, gbits):
    """Seconds until each has sent `size` bytes to the others, in as many messages."""
    return latency + 2 * (machines - 1) * overhead + size / (gbits * 1e9 / 8)


def data_step(stack, network):
    """Backward computes the inputs' gradient and the weight's, whose sum goes over all machines
    meanwhile: reduce-scatter and allgather."""
    step = Step()
    last = None
    for _ in range(stack.layers):
        last = step.add(COMPUTE, stack.forward, [last])
    share = (stack.machines - 1) / stack.machines
    for _ in range(stack.layers):
        last = step.add(COMPUTE, 2 * stack.forward, [last])
        step.add(NETWORK, 2 * messages(stack.machines, 4 * stack.nonzeros * share, *network), [last])
    return step.run()


def rows_step(stack, network, chunks):
    """Forward, a layer's outputs are gathered from all before the next begins; backward, each machine's
    part of the inputs' gradient is added up where those rows are. The batch goes through in chunks, so
    that one chunk's messages go on while another is computed. Weights' gradients stay where they are."""
    step = Step()
    size = 4 * stack.tokens / chunks * stack.width * (stack.machines - 1) / stack.machines
    exchange = messages(stack.machines, size, *network)
    last = [None] * chunks
    for _ in range(stack.layers):
        for c in range(chunks):
            outputs = step.add(COMPUTE, stack.forward / chunks, [last[c]])
            last[c] = step.add(NETWORK, exchange, [outputs])
    for layer in range(stack.layers):
        for c in range(chunks):
            last[c] = step.add(COMPUTE, 2 * stack.forward / chunks, [last[c]])
            if layer < stack.layers - 1:
                last[c] = step.add(NETWORK, exchange, [last[c]])
    return step.run()


def print_table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def gigabytes(size, most):
    text = f"{size / 1e9:.1f} GB" if size < 1e11 else f"{size / 1e9:.0f} GB"
    return f"{text}: too much" if size > most else text


def seconds_of(stack, chunks):
    """By network: data parallel, rows in one chunk, and rows in several."""
    for network in scaling.NETWORKS.values():
        yield from (f"{seconds:.3g} s" for seconds in (
            data_step(stack, network), rows_step(stack, network, 1), rows_step(stack, network, chunks)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=8192, help="of a step, over all machines")
    parser.add_argument("--density", type=float, default=0.1)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--rate", type=float, default=290e9,
                        help="a machine's floating-point operations a second with nonzeros")
    parser.add_argument("--memory", type=float, default=64e9, help="a machine's bytes")
    parser.add_argument("--bytes-per-nonzero", type=float, default=24.0)
    a = parser.parse_args()

    def stack_of(width, tokens):
        return Stack(width, a.density, a.layers, tokens, a.machines, a.rate)

    times = [f"{name}: {what}" for name in scaling.NETWORKS
             for what in ("data", "rows", f"rows, {a.chunks} chunks")]
    rows = []
    for width in (4096, 8192, 16384, 32768, 65536, 131072):
        stack = stack_of(width, a.tokens)
        rows.append([str(width), f"{a.layers * stack.nonzeros / 1e9:.3g}",
                     gigabytes(stack.data_memory(a.bytes_per_nonzero), a.memory),
                     gigabytes(stack.rows_memory(a.bytes_per_nonzero), a.memory),
                     *seconds_of(stack, a.chunks)])
    print(f"{a.layers} layers, {100 * (1 - a.density):g} % sparse, {a.tokens} tokens per step, "
          f"{a.machines} machines\n")
    print_table(["width", "10⁹ nonzeros", "memory: data", "rows", *times], rows)

    width = 16384
    rows = [[str(tokens), *seconds_of(stack_of(width, tokens), a.chunks)]
            for tokens in (256, 512, 1024, 2048, 4096, 8192, 16384)]
    print(f"Width {width}, by tokens per step:\n")
    print_table(["tokens", *times], rows)


if __name__ == "__main__":
    main()
