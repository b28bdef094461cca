"""A small model, and a few steps of its training with an algorithm."""

import numpy as np

import lacuna as lc

X = np.random.default_rng(1).random((32, 12), dtype=np.float32)
Y = np.arange(32) % 4
WEIGHTS = ["fc1.weight", "fc2.weight", "fc3.weight"]


def make_model(first="fc1", second="fc2", last="fc3"):
    return lc.Model(
        [
            lc.Linear(12, 16, name=first),
            lc.ReLU(),
            lc.Linear(16, 16, name=second),
            lc.ReLU(),
            lc.Linear(16, 4, name=last),
        ]
    )


def step(model, optimizer):
    lc.cross_entropy(model(X), Y).backward()
    optimizer.step()
    optimizer.zero_grad()


def sparse_run(algorithm, steps=4, model=None, **options):
    model = model or make_model()
    model.apply(algorithm)
    optimizer = lc.AdamW(model.parameters(), lr=1e-2, **options)
    optimizer.apply(algorithm)
    for _ in range(steps):
        step(model, optimizer)
    return model, optimizer


def densities(model):
    return [model[name].density for name in WEIGHTS]
