"""Trains the networks of networks.py as peers.py asks: a line of JSON in, a line of JSON out. The first line is written unasked.

    {"version": PyTorch's, "blas": name}
    {"make": [network, kind, sparsity], "key": K}    -> {"parameters": n, "loss": first}
    {"run": K, "seconds": s, "warm": bool}           -> {"ms": [one number per step]}
"""
import json
import sys
import time
import warnings

import torch

import networks


def blas():
    """The library of products that PyTorch has loaded; "" for those that nobody should compare with: the reference, and an
    OpenBLAS with threads of its own next to PyTorch's."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = maps.read().lower()
    if "openblas-pthread" in loaded:
        return ""
    return next((name for name in ("OpenBLAS", "BLIS", "MKL", "ATLAS") if f"lib{name.lower()}" in loaded), "")


def run(trainee, seconds, warm):
    if warm:
        trainee.step()
    steps = []
    while not steps or (warm and len(steps) < 2) or sum(steps) < 1e3 * seconds:
        start = time.perf_counter()
        trainee.step()
        steps.append(1e3 * (time.perf_counter() - start))
    return steps


def main():
    warnings.filterwarnings("ignore")  # PyTorch warns at each use that CSR is in beta
    torch.set_num_threads(int(sys.argv[1]))
    trainees = {}
    print(json.dumps({"version": torch.__version__, "blas": blas()}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "make" in request:
            trainee = networks.Trainee(*request["make"])
            trainees[request["key"]] = trainee
            answer = {"parameters": trainee.parameters, "loss": trainee.step()}
        else:
            answer = {"ms": run(trainees[request["run"]], request["seconds"], request["warm"])}
        print(json.dumps(answer), flush=True)


main()
