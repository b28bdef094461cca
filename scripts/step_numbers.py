#!/usr/bin/env python3
"""Numbers of a run of two processes that has logged each step, for scripts/network.sh.

usage: scripts/step_numbers.py RUN floats          floats that a process sends per step
       scripts/step_numbers.py RUN hidden NETWORK  part of the exchange that is hidden behind the backward pass;
                                                   NETWORK is the output of bench_network --exchange
"""
import argparse
import json
import statistics


def steps_of(run):
    """The training events of a run, with the seconds of each step, without the first fifth."""
    events = []
    before = 0.0
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            if event["split"] != "train":
                continue
            event["step_seconds"] = event["seconds"] - before
            before = event["seconds"]
            events.append(event)
    return events[len(events) // 5:]


def median(events, key):
    return statistics.median(event[key] for event in events)


def floats_of(events, processes):
    return round(median(events, "bytes_sent") * processes / (8 * (processes - 1)))


def report_hidden(events, network):
    exchange, waited = network["exchange"], median(events, "wait_seconds")
    print(f"network     latency {1e6 * network['latency']:.0f} us, "
          f"{8e-9 * network['bytes_per_second']:.2f} Gbit/s each way, measured")
    print(f"exchange    {1e3 * exchange:.2f} ms by itself, of {floats_of(events, 2)} numbers in "
          f"{network['buckets']} buckets")
    print(f"waited      {1e3 * waited:.2f} ms after backward, of {1e3 * median(events, 'step_seconds'):.1f}"
          " ms a step")
    print(f"hidden      {100 * max(0.0, 1 - waited / exchange):.0f} % of the exchange")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN")
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("floats", help="floats that a process sends per step")
    hidden = kinds.add_parser("hidden", help="part of the exchange that is hidden behind the backward pass")
    hidden.add_argument("network", metavar="NETWORK", help="the output of bench_network --exchange")
    a = parser.parse_args()
    events = steps_of(a.run)
    if a.kind == "floats":
        print(floats_of(events, 2))
        return
    with open(a.network, encoding="utf-8") as file:
        report_hidden(events, json.load(file))


if __name__ == "__main__":
    main()
