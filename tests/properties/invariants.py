"""What holds for every configuration that trains. Each function adds to a case what does not."""
import os
import shutil

import yaml

import program as lacuna
from accumulation import accumulation
from configurations import STEPS

FAULT_POINTS = ("step.after_backward", "step.before_update", "step.between",
                "checkpoint.half_written", "checkpoint.before_rename", "checkpoint.after_rename",
                "checkpoint.after_prune", "run.before_summary")
MLP_KINDS = ("glyphs", "idx", "images", "csv", "hdf5", "regression")  # no borders of convolutions
FORMATS = {"safetensors": ".safetensors", "npz": ".npz", "csr-npz": ".npz"}


class Case:
    """One configuration on its way through all invariants."""

    def __init__(self, program, kind, config, folder, data, random):
        self.program, self.kind, self.config = program, kind, config
        self.folder, self.data, self.random = folder, data, random
        self.file, self.run = f"{folder}/config.yaml", f"{folder}/run"
        self.counts, self.faults = {}, []
        self.write(self.file, config)

    @staticmethod
    def write(path, config):
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(config, file, sort_keys=False)

    def expect(self, invariant, fault):
        """Counts one check; `fault` says what is wrong, and is empty where nothing is."""
        self.counts[invariant] = self.counts.get(invariant, 0) + 1
        if fault:
            self.faults.append(f"{invariant}: {fault}")

    def train(self, file, name, *more, threads=1, **environment):
        """Trains into a folder of this name; (exit code, standard error)."""
        code, _, errors = self.program("train", file, "--run-dir", f"{self.folder}/{name}",
                                       "--threads", threads, "--quiet", *more, **environment)
        return code, errors

    def difference(self, name, ended, compare_events=True):
        """How the run of this name differs from the first: '' where it does in nothing."""
        code, errors = ended
        if code != 0:
            return f"ended with {code}: {errors[-300:]}"
        run = f"{self.folder}/{name}"
        arrays = lacuna.checkpoint_differences(self.arrays, lacuna.last_checkpoint(run))
        if arrays:
            return f"bits differ in {arrays}"
        if compare_events and lacuna.events(run) != self.events:
            return "metrics.jsonl differs"
        return ""

    def begin(self):
        """The first run, with one thread; False where the configuration is refused."""
        code, errors = self.train(self.file, "run")
        self.expect("ends well or is refused", lacuna.refusal_fault(code, errors))
        if code != 0:
            return False
        self.arrays, self.events = lacuna.last_checkpoint(self.run), lacuna.events(self.run)
        return True


def threads(case):
    ended = case.train(case.file, "threads", threads=2)
    case.expect("1 thread = 2 threads", case.difference("threads", ended))


def resumption(case):
    """Killed at a random place, resumed with one thread or two, perhaps killed again."""
    random = case.random
    faults = [f"{random.choice(FAULT_POINTS)}:{random.randint(1, STEPS)}"]
    faults += [f"{random.choice(FAULT_POINTS)}:{random.randint(1, 6)}"
               for _ in range(random.randint(0, 2))]
    ended = case.train(case.file, "killed", LACUNA_FAULT=faults[0])
    for fault in faults[1:]:
        if ended[0] == -9:
            ended = resume(case, random.choice([1, 2]), LACUNA_FAULT=fault)
    if ended[0] == -9:
        ended = resume(case, random.choice([1, 2]))
    fault = case.difference("killed", ended)
    case.expect("killed and resumed = uninterrupted", fault and f"{faults} {fault}")


def resume(case, count, **environment):
    code, _, errors = case.program("train", "--resume", "--run-dir", f"{case.folder}/killed",
                                   "--threads", count, "--quiet", **environment)
    return code, errors


def rerun(case):
    ended = case.train(f"{case.run}/config.yaml", "again")
    case.expect("run again from its own config.yaml", case.difference("again", ended))


def evaluation(case):
    """`eval` repeats the last evaluation, in batches of any size, by any instruction set."""
    case.evaluated = result = lacuna.evaluate(case.program, case.run)
    if isinstance(result, str):
        case.expect("eval --last = last evaluation",
                    "" if "neither" in result else result)
        return
    last = {event["split"]: event for event in case.events if "split" in event
            and "loss" in event and event.get("step") == case.events[-1].get("step")}
    for split in set(result) & set(last):
        left, right = ({"x": {key: of[split].get(key) for key in ("loss", "accuracy")}}
                       for of in (result, last))
        case.expect("eval --last = last evaluation",
                    lacuna.evaluation_fault(left, right, 3e-5))
    for size in (1, 7, 33):
        again = lacuna.evaluate(case.program, case.run, f"train.eval_batch_size={size}")
        fault = lacuna.evaluation_fault(result, again)
        case.expect("evaluation in batches of any size", fault and f"{size}: {fault}")
    for instruction_set in ("avx2", "sse4", "reference"):
        again = lacuna.evaluate(case.program, case.run, LACUNA_INSTRUCTION_SET=instruction_set)
        if isinstance(again, str) and "LACUNA_INSTRUCTION_SET" in again:
            continue  # this processor lacks it
        fault = lacuna.evaluation_fault(result, again, 3e-4)
        case.expect("evaluation by any instruction set", fault and f"{instruction_set}: {fault}")


def round_trip(case):
    """Weights that are exported and imported evaluate as before."""
    name = case.random.choice(sorted(FORMATS))
    masks = ["--masks"] if name != "csr-npz" and case.random.random() < 0.5 else []
    find = ["--find-pattern"] if case.random.random() < 0.4 else []
    file = f"{case.folder}/weights{FORMATS[name]}"
    code, _, errors = case.program("export", case.run, "--last", "--format", name, "--out", file,
                                   *masks)
    if code == 0:
        with open(f"{case.run}/config.yaml", encoding="utf-8") as resolved:
            config = yaml.safe_load(resolved)
        config.pop("csr_up_to", None)
        config.pop("sparsity", None)
        # A sparsifier of a weight runs again on the imported values, and a random one redraws.
        config["sparsifiers"] = [entry for entry in config.get("sparsifiers") or []
                              if not entry["tensor"].endswith(".weight")]
        if isinstance(config["model"], dict):
            config["model"].pop("init_from", None)
        case.write(f"{case.folder}/import.yaml", config)
        code, _, errors = case.program("import", file, "--config", f"{case.folder}/import.yaml",
                                       "--out", f"{case.folder}/imported", *find)
    if code != 0:
        case.expect("export -> import -> eval", f"{name} {masks} {find}: {errors[-300:]}")
    elif not isinstance(case.evaluated, str):
        again = lacuna.evaluate(case.program, f"{case.folder}/imported")
        fault = lacuna.evaluation_fault(case.evaluated, again)
        case.expect("export -> import -> eval", fault and f"{name} {masks} {find}: {fault}")
    code, _, errors = case.program("export", case.run, "--last", "--format", "onnx", "--out",
                                   f"{case.folder}/model.onnx")
    case.expect("ONNX or a refusal", lacuna.refusal_fault(code, errors))


def shrinking(case):
    """A model without its dead units computes the same, or shrink says what is lost."""
    if case.kind not in MLP_KINDS or isinstance(case.evaluated, str):
        return
    code, output, errors = case.program("shrink", case.run, "--last", "--method", "dead",
                                        "--run-dir", f"{case.folder}/smaller")
    if code != 0:
        case.expect("shrink or a refusal", lacuna.refusal_fault(code, errors))
    elif "are lost after" not in output:
        again = lacuna.evaluate(case.program, f"{case.folder}/smaller")
        case.expect("without dead units = with them",
                    lacuna.evaluation_fault(case.evaluated, again, 3e-4))


def prediction(case):
    """predict reads what training read, and ends well."""
    inputs = {"csv": f"{case.data}/table.csv", "images": f"{case.data}/images/test/dog",
              "idx": f"{case.data}/idx/t10k-images-idx3-ubyte.gz"}.get(case.kind)
    if inputs is None:
        return
    code, _, errors = case.program("predict", case.run, inputs, "--last", "--out",
                                   f"{case.folder}/predicted.csv")
    case.expect("predict", code and f"ended with {code}: {errors[-300:]}")


def columns(case):
    """A table with its columns in another order is read by name, or refused."""
    if case.kind != "csv":
        return
    setting = f"data.train={case.data}/permuted.csv"
    result = lacuna.evaluate(case.program, case.run, setting)
    refused = isinstance(result, str) and result.startswith(("eval ended with 1:",
                                                             "eval ended with 2:"))
    case.expect("columns permuted",
                "" if refused else lacuna.evaluation_fault(case.evaluated, result))
    ended = case.train(case.file, "permuted", LACUNA_FAULT="checkpoint.after_prune:1")
    if ended[0] != -9:
        return
    code, _, errors = case.program("train", "--resume", "--run-dir", f"{case.folder}/permuted",
                                   "--threads", 1, "--quiet", "--set", setting)
    if code in (1, 2):
        case.expect("columns permuted", lacuna.refusal_fault(code, errors))
    else:
        case.expect("columns permuted", case.difference("permuted", (code, errors), False))


ALL = (threads, resumption, rerun, evaluation, round_trip, shrinking, prediction, columns,
       accumulation)


def check_case(case, without=()):
    """All invariants of one configuration, and that no command changed what it read."""
    inputs = lacuna.tree_hash(case.data, case.file)
    if not case.begin():
        return False
    for invariant in ALL:
        if invariant.__name__ in without:
            continue
        before = {**inputs, **lacuna.tree_hash(case.run)}
        invariant(case)
        after = lacuna.tree_hash(case.data, case.file, case.run)
        changed = sorted(path for path in set(before) | set(after)
                         if before.get(path) != after.get(path))
        case.expect("inputs untouched", changed and f"{invariant.__name__}: {changed[:5]}")
    return True


def remove_folder(case):
    if os.path.isdir(case.folder):
        shutil.rmtree(case.folder)
