"""Every number of a resolved configuration at its extremes: it trains or is refused with a message."""
import copy
import shutil
import time

import yaml

import program as lacuna

VALUES = (2**63 - 1, 2**63 - 2, 2**62, 2**32, 2**31 - 1, -1, 0, 1, 3, 7, 16, 1000, 65536, -2**63,
          0.5, 1e308, -1e308, 1e-320, 1e18, float("inf"), float("nan"), True, "1e3", None)
WORST = (2**63 - 1, -1, 0, float("nan"))
ENOUGH_STEPS = 100  # more steps are no fault, but are not waited for
SECONDS = 20  # a model that is larger than that is no fault, any other number is


def numbers(value, place=()):
    """The places of all numbers in a configuration."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, place + (key,))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from numbers(item, place + (index,))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place


def changed(config, place, value):
    """The configuration with this value at this place, of a run of four steps."""
    config = copy.deepcopy(config)
    config["train"]["steps"] = 4
    part = config
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return config


def drawn(random, places, count):
    """`count` pairs of place and value: each section as often as another, and half of the values
    those that break most. All pairs if `count` is None."""
    if count is None:
        return [(place, value) for place in places for value in VALUES]
    sections = {}
    for place in places:
        sections.setdefault(place[0], []).append(place)
    names = sorted(sections)
    return [(random.choice(sections[random.choice(names)]),
             random.choice(WORST if random.random() < 0.5 else VALUES)) for _ in range(count)]


def check_extremes(case, count):
    """Tries `count` numbers of the configuration that this case has trained; None: all of them."""
    with open(f"{case.run}/config.yaml", encoding="utf-8") as file:
        resolved = yaml.safe_load(file)
    for key in ("csr_up_to", "convolution_algorithms"):  # measured, not written by hand
        resolved.pop(key, None)
    for index, (place, value) in enumerate(drawn(case.random, list(numbers(resolved)), count)):
        length = place in (("train", "steps"), ("train", "epochs"))
        if length and isinstance(value, (int, float)) and value > ENOUGH_STEPS:
            continue
        file, run = f"{case.folder}/extreme-{index}.yaml", f"{case.folder}/extreme"
        case.write(file, changed(resolved, place, value))
        shutil.rmtree(run, ignore_errors=True)
        began = time.monotonic()
        code, _, errors = case.program("train", file, "--run-dir", run, "--threads", 1, "--quiet",
                                       seconds=SECONDS)
        name = ".".join(map(str, place))
        if code == "timeout" and place[0] == "model":
            case.expect("models too large to wait for", "")
            continue
        fault = lacuna.refusal_fault(code, errors)
        case.expect("numbers at their extremes", fault and f"{name}: {value}: {fault}")
        case.slowest = max(case.slowest, (round(time.monotonic() - began, 1), f"{name}: {value}"))
