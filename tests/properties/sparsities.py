"""Random values of the configuration's key `sparsity`, over all algorithms."""

KINDS = ("static", "rigl", "set", "dynamic", "srigl", "snfs", "gmp", "ste", "saliency", "acdc",
         "snip", "magnitude", "wanda", "sparsegpt", "admm", "semi", "phases", "nm", "block", "none",
         "list")


def updates(random):
    update = {"freq": random.choice([3, 4, 5, 7])}
    if random.random() < 0.3:
        update["start"] = random.choice([1, 3, 6])
    if random.random() < 0.3:
        update["stop"] = random.choice([12, 15])
    return update


def rising(random):
    """A schedule for algorithms that prune bit by bit."""
    if random.random() < 0.4:
        return [0.1, 0.3, 0.5, 0.6, 0.7]
    return {"type": "polynomial", "init": random.choice([0.0, 0.2]), "final": 0.7, "start": 2,
            "end": random.choice([10, 18])}


def drop_fraction(random):
    return random.choice([
        0.3, [0.3, 0.1, 0.2], {"type": "cycling", "values": [0.3, 0.1]},
        {"type": "cosine", "init": 0.4, "half_period": 30},
        {"type": "exp", "init": 0.4, "gamma": -0.05, "final": 0.05}])


def patterned(random, kind, sparsity):
    sparsity["algorithm"] = random.choice(
        ["static", "set", "rigl"] if kind == "nm" else ["set", "rigl"])
    if kind == "nm":
        sparsity["pattern"] = {"type": "nm", "n": random.choice([1, 2]), "m": 4}
        sparsity["layout"] = random.choice(["nm", "masked", "auto"])
    else:
        sparsity.update(sparsity=0.5, layout=random.choice(["block", "masked", "auto"]))
        sparsity["pattern"] = {"type": "block", "rows": random.choice([2, 4]),
                               "cols": random.choice([2, 4]), "norm": random.choice(["l1", "l2"])}
    if sparsity["algorithm"] != "static":
        sparsity["update"] = updates(random)
    return sparsity


def phases(random, names):
    last = {"algorithm": random.choice(["rigl", "admm", "magnitude"]), "sparsity": 0.7}
    steps = [{"until": random.choice([4, 6, 7]), "algorithm": random.choice(
        ["static", "set", "dense"])}, {"until": 11, "algorithm": random.choice(["ste", "dense"])},
             last]
    for phase in steps:
        phase["param_filter"] = names
        if phase["algorithm"] in ("static", "set", "ste"):
            phase["sparsity"] = 0.5
        if phase["algorithm"] in ("set", "ste", "rigl"):
            phase["update"] = {"freq": 3}
        if phase["algorithm"] == "admm":
            phase["calibration"] = 16
    return {"phases": steps}


def one_shot(random, kind, sparsity):
    examples = random.choice([16, 40])
    sparsity.update(sparsity=0.5, least_squares=random.choice([True, False]),
                    calibration=random.choice([examples, {"examples": examples, "batch_size": 8}]))
    if sparsity["least_squares"] and random.random() < 0.5:
        sparsity["least_squares_damping"] = 0.1
    if kind == "sparsegpt" and random.random() < 0.5:
        sparsity.update(block=16, damping=0.01)
    if kind == "admm" and random.random() < 0.5:
        sparsity.update(rounds=5, damping=0.1)
    return sparsity


def dynamic(random, kind, sparsity):
    sparsity["sparsity"] = random.choice([0.5, 0.8, 0.6])
    if kind in ("static", "rigl", "set"):
        if random.random() < 0.5:
            sparsity["distribution"] = random.choice(["er", "erk", "igq", "uniform"])
        if random.random() < 0.3:
            sparsity["init_method"] = random.choice(["topk", "balanced", "checkerboard"])
    if kind == "dynamic":
        sparsity["grow"] = random.choice(["random", "gradient", {"mixed": 0.5}, {"mixed": 0.1}])
    if kind == "srigl":
        sparsity["min_salient"] = random.choice([0, 0.3, 0.95])
    if kind in ("rigl", "set", "dynamic") and random.random() < 0.3:
        sparsity["keep_alive"] = True
    if kind in ("rigl", "set", "dynamic", "srigl", "snfs") and random.random() < 0.5:
        sparsity["drop_fraction"] = drop_fraction(random)
    if kind == "snfs":
        sparsity["redistribute"] = random.choice([True, False])
    if kind != "static":
        sparsity["update"] = updates(random)
    return sparsity


def sparsity_of(random, kind, names):
    """The value of `sparsity` for parameters of these names; None is dense training."""
    if kind == "none":
        return None
    if kind == "phases":
        return phases(random, names)
    layout = random.choice(["auto", "csr", "masked"])
    sparsity = {"algorithm": kind, "layout": layout, "param_filter": names}
    if kind in ("nm", "block"):
        return patterned(random, kind, sparsity)
    if kind == "semi":
        return {"algorithm": "semi_sparse", "pattern": {"type": "nm", "n": 2, "m": 4},
                "every": random.choice([1, 3]), "decay": random.choice([0, 2e-4]),
                "param_filter": names}
    if kind == "list":
        return [{"algorithm": "rigl", "sparsity": 0.6, "param_filter": [names[0]],
                 "update": updates(random)},
                {"algorithm": "static", "sparsity": 0.5, "param_filter": ["*.weight"]}]
    if kind in ("gmp", "ste", "saliency"):
        sparsity["sparsity"] = rising(random) if kind == "gmp" else {
            "type": "polynomial", "init": random.choice([0.0, 0.2]), "final": 0.7, "start": 2,
            "end": 10}
        sparsity["update"] = {"freq": random.choice([3, 4, 5])}
        return sparsity
    if kind == "snip":
        sparsity["sparsity"] = 0.6
        return sparsity
    if kind in ("magnitude", "wanda", "sparsegpt", "admm"):
        return one_shot(random, kind, sparsity)
    return dynamic(random, kind, sparsity)
