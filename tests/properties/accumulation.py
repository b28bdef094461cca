"""N micro-batches make the step of the one batch that they are, and of its shards, for every loss."""
import copy

import numpy as np

import program as lacuna
from configurations import FILTERS

PARTS = 4
MICRO_BATCH = 6
WEIGHT_TOLERANCE = 1e-6
LOSS_TOLERANCE = 1e-5
# Sentences are batched by length, so that the batches of an epoch depend on their size: one batch
# is a whole epoch then.
MICRO_BATCH_OF_SENTENCES = {"bert": 65, "masked_lm": 65, "pairs": 45}
CLASSES = {"glyphs": 10, "idx": 10, "convolution": 10, "cifar": 10, "convolution1d": 10, "vit": 10,
           "csv": 2, "images": 2, "pairs": 2, "hdf5": 3, "bert": 3, "signals": 4}
DROPOUTS = {"gpt2": ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
            "bert": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
            "vit": ("hidden_dropout_prob", "attention_probs_dropout_prob"), "llama": ()}


def without_chance(model):
    """The model without what depends on the batch (batch_norm) or on chance (dropout)."""
    if isinstance(model, dict):
        return {**model, **{name: 0.0 for name in DROPOUTS[model["type"]]}}
    layers = [layer for layer in model
              if not (isinstance(layer, dict) and layer["type"] == "batch_norm")]
    return ["relu" if isinstance(layer, dict) and layer["type"] == "dropout" else layer
            for layer in layers]


def loss_of(random, case):
    """Any loss that the model can have, with any of its options."""
    if case.kind == "regression":
        return "mse"
    loss = {"type": "cross_entropy"}
    classes = CLASSES.get(case.kind)
    if random.random() < 0.4:
        loss = {"type": "distillation", "teacher": case.run, "weight": random.choice([0.3, 0.9]),
                "temperature": random.choice([1.0, 3.0])}
    if classes and random.random() < 0.6:
        loss["class_weights"] = [random.choice([0.25, 1.0, 4.0]) for _ in range(classes)]
    if case.kind != "masked_lm" and random.random() < 0.4:
        loss["ignore_index"] = random.randrange(classes or 10)
    if random.random() < 0.3:
        loss["label_smoothing"] = 0.1
    return loss


def plain(case):
    """The case's configuration as far as it is the same in batches of any size."""
    random = case.random
    config = {key: copy.deepcopy(case.config[key]) for key in ("data", "model")}
    config["data"].pop("augment", None)
    config["data"]["streamed"] = False
    if config["data"]["type"] != "labelled_text":
        del config["data"]["streamed"]
    has_words = case.kind in ("gpt2", "llama") and random.random() < 0.4
    config["model"] = without_chance(config["model"])
    config["loss"] = loss_of(random, case)
    if has_words and "teacher" not in config["loss"]:  # a teacher has the vocabulary of its own run
        config["data"]["tokenizer"] = "words"
    config["optimizer"] = {"type": "sgd", "lr": 0.05, "momentum": 0.9}
    config["train"] = {"steps": 2, "log_every": 2, "eval_every": 100, "seed": 3}
    if random.random() < 0.4:
        config["sparsity"] = {"algorithm": "static", "sparsity": 0.5, "layout": random.choice(["masked", "csr"]),
                              "param_filter": FILTERS.get(case.kind, ["*fc*.weight"])}
    return config


def training_loss(run):
    return [event["loss"] for event in lacuna.events(run)
            if event.get("split", event.get("event")) == "train" and "loss" in event]


def weight_fault(expected, found):
    if set(expected) != set(found):
        return f"parameters {sorted(set(expected) ^ set(found))[:5]}"
    for name, value in expected.items():
        worst = np.max(np.abs(value - found[name]) / np.maximum(1, np.abs(value)), initial=0)
        if not worst <= WEIGHT_TOLERANCE:
            return f"{name} is {worst:.2g} away"
    return ""


def accumulation(case):
    if case.kind == "resnet":
        return  # has batch_norm
    config = plain(case)
    file = f"{case.folder}/accumulation.yaml"
    case.write(file, config)
    size = MICRO_BATCH_OF_SENTENCES.get(case.kind, MICRO_BATCH)
    ways = {"one": (PARTS, 1, 0), "micro": (1, PARTS, 0), "shards": (PARTS, 1, PARTS),
            "both": (PARTS // 2, 2, 2)}
    results = {}
    for name, (batch, accumulate, shards) in ways.items():
        code, errors = case.train(
            file, f"accumulation-{name}", "--set", f"train.batch_size={size * batch}",
            "--set", f"train.accumulate={accumulate}", "--set", f"train.shards={shards}")
        if code != 0:
            case.expect("accumulate = one batch = shards",
                        lacuna.refusal_fault(code, errors) or f"refused: {errors[-300:]}")
            return
        run = f"{case.folder}/accumulation-{name}"
        results[name] = (lacuna.dense_weights(lacuna.last_checkpoint(run)), training_loss(run))
    weights, losses = results.pop("one")
    for name, (other_weights, other_losses) in results.items():
        fault = weight_fault(weights, other_weights)
        if not fault and (not losses or not np.allclose(losses, other_losses, LOSS_TOLERANCE)):
            fault = f"training loss {losses} / {other_losses}"
        case.expect("accumulate = one batch = shards", fault and f"{config['loss']} {name}: {fault}")
