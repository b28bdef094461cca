"""Trains a case in PyTorch: the same batches in the same order, from the same weights."""
import itertools
import math

import numpy as np
import torch
import torch.nn.functional as F

import data_order
import reference_models
from lacuna_runs import Trained


def drawn_batches(case, splits):
    """What lacuna's loader gives, batch after batch."""
    draw = {"labelled_text": sentence_batches, "tokens": window_batches}.get(case.kind, image_batches)
    data = {**case.config["data"], "vocabulary": splits.get("vocabulary")}
    return draw(splits["train"], data, case.config["train"])


def staying(size, data, seed):
    """The training examples that data.limit and data.validation leave."""
    size = min(size, data.get("limit", size))
    return data_order.held_out(size, data.get("validation", 0), seed)[0]


def sentence_batches(split, data, train):
    seed, masked = train["seed"], "mask_fraction" in data
    stay = staying(len(split[0]), data, seed)
    sentences, labels = [split[0][i] for i in stay], split[1][stay]
    lengths = [len(ids) for ids in sentences]
    for epoch, examples in data_order.batches(len(stay), train["batch_size"], seed, lengths=lengths):
        batch = padded([sentences[i] for i in examples], labels[examples])
        yield with_hidden_words(batch, stay[examples], data, seed, epoch) if masked else batch


def with_hidden_words(batch, places, data, seed, epoch):
    """`places`: of the sentences in their file."""
    width = batch["input_ids"].shape[1]
    ids = F.pad(batch["input_ids"], (0, data["max_length"] - width)).numpy()
    ids = ids + (ids >= 2)  # [MASK] stands after [PAD] and [UNK]
    pairs = [data_order.hidden_tokens(row, int(place), seed, epoch, data["mask_fraction"], 2,
                                      data["vocabulary"] + 1, [0, 1, 2]) for row, place in zip(ids, places)]
    read, labels = (torch.tensor(np.stack(arrays)[:, :width]) for arrays in zip(*pairs))
    return {**batch, "input_ids": read, "labels": labels}


def window_batches(sequence, data, train):
    seed, masked = train["seed"], "mask_fraction" in data
    windows = len(sequence) - data["context"] + (1 if masked else 0)
    for epoch, examples in data_order.batches(windows, train["batch_size"], seed):
        yield (hidden if masked else following)(sequence, examples, data, seed, epoch)


def image_batches(split, data, train):
    seed = train["seed"]
    stay = staying(len(split[1]), data, seed)
    pixels, labels = split[0][stay], split[1][stay]
    for epoch, examples in data_order.batches(len(stay), train["batch_size"], seed,
                                              drop_last=train.get("drop_last", False),
                                              labels=labels if data.get("sampling") == "balanced" else None):
        images = data_order.cropped_and_flipped(pixels[examples], examples, seed, epoch,
                                                **data.get("augment", {}))
        yield {"inputs": normalized(images, data), "labels": torch.tensor(labels[examples])}


def normalized(images, data):
    values = torch.tensor(images, dtype=torch.get_default_dtype()) / 255
    mean, deviation = (torch.tensor(data["normalize"][key]).reshape(1, -1, 1, 1) for key in ("mean", "std"))
    return (values - mean) / deviation


def padded(sentences, labels):
    longest = max(map(len, sentences))
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids in sentences])
    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids in sentences])
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(labels)}


def following(sequence, examples, data, seed, epoch):
    del seed, epoch
    windows = torch.tensor(np.stack([sequence[i:i + data["context"] + 1] for i in examples]))
    return {"input_ids": windows[:, :-1], "labels": windows[:, 1:]}


def hidden(sequence, examples, data, seed, epoch):
    pairs = [data_order.hidden_tokens(sequence[i:i + data["context"]], int(i), seed, epoch, data["mask_fraction"],
                                      data["mask_id"], data["vocab_size"], [data["mask_id"]]) for i in examples]
    ids, labels = (torch.tensor(np.stack(arrays)) for arrays in zip(*pairs))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def joined(batches):
    """Accumulated batches are one larger batch, padded to its longest sentence."""
    if "attention_mask" in batches[0]:
        width = max(batch["input_ids"].shape[1] for batch in batches)
        fills = {"input_ids": 0, "attention_mask": 0, "labels": data_order.IGNORED}
        batches = [{name: value if value.dim() == 1 else
                    F.pad(value, (0, width - value.shape[1]), value=fills[name])
                    for name, value in batch.items()} for batch in batches]
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}


def learning_rate(optimizer, step):
    lr = optimizer["lr"]
    if isinstance(lr, dict):
        if lr["type"] == "cosine_once":
            progress = min(step, lr["half_period"]) / lr["half_period"]
            lr = lr["minimum"] + (lr["init"] - lr["minimum"]) * 0.5 * (1 + math.cos(math.pi * progress))
        else:
            lr = lr["init"] * lr["gamma"] ** sum(step >= milestone for milestone in lr["milestones"])
    return lr * min(1.0, (step + 1) / optimizer["warmup"]) if optimizer.get("warmup") else lr


def make_optimizer(section, parameters):
    def decays(name, value):
        kinds = section.get("no_decay", [])
        if name.endswith(".bias"):
            return "bias" not in kinds
        return value.dim() > 1 or "norm" not in kinds
    decay = section.get("weight_decay", 0.0)
    groups = [{"params": [value for name, value in parameters.items() if decays(name, value) == which],
               "weight_decay": decay if which else 0.0} for which in (True, False)]
    groups = [group for group in groups if group["params"]]
    if section["type"] == "sgd":
        return torch.optim.SGD(groups, 0.1, **{key: section[key] for key in ("momentum", "dampening", "nesterov")
                                               if key in section})
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[section["type"]]
    return kind(groups, 0.1, betas=section.get("betas", (0.9, 0.999)), eps=section.get("eps", 1e-8))


class Sparsity:
    """Masks of some weights, fixed or by RigL."""

    def __init__(self, section, masks, parameters, optimizer):
        self._section, self._parameters, self._optimizer = section, parameters, optimizer
        self.masks = {name: torch.tensor(mask) for name, mask in masks.items()}
        self.apply()

    def apply(self):
        with torch.no_grad():
            for name, mask in self.masks.items():
                self._parameters[name] *= mask

    def select_gradients(self):
        """Prunes the gradients; returns them whole."""
        whole = {name: self._parameters[name].grad.clone() for name in self.masks}
        for name, mask in self.masks.items():
            self._parameters[name].grad *= mask
        return whole

    def update(self, step, gradients):
        if not self.masks or self._section["algorithm"] != "rigl":
            return
        update = self._section["update"]
        if step % update["freq"] == 0 and step < update["stop"]:
            for name in self.masks:
                self._move(name, gradients[name])

    def _move(self, name, gradient):
        """Drops the smallest weights, then grows as many where the gradient is largest: dropped ones too, which
        keep value and state then."""
        old, weight = self.masks[name].flatten(), self._parameters[name]
        count = int(old.sum())
        kept = int(np.float32(1.0 - np.float32(self._section["drop_fraction"])) * np.float32(count))
        magnitudes = weight.detach().abs().flatten().masked_fill(~old, -1.0)
        new = torch.zeros_like(old)
        new[magnitudes.argsort(descending=True)[:kept]] = True
        scores = gradient.abs().flatten().masked_fill(new, -1.0)
        new[scores.argsort(descending=True)[:count - kept]] = True
        self.masks[name] = new.view_as(weight)
        stays = (new & old).view_as(weight)
        with torch.no_grad():
            weight *= stays
            for state in self._optimizer.state[weight].values():
                if torch.is_tensor(state) and state.shape == weight.shape:
                    state *= stays


class Average:
    """The exponential moving average of train.ema."""

    def __init__(self, section):
        section = section if isinstance(section, dict) else {"decay": section}
        self._decay, self._start, self.values = section["decay"], section.get("start", 0), None

    def update(self, step, parameters):
        if step < max(self._start, 1):
            return
        now = {name: value.detach().clone() for name, value in parameters.items()}
        self.values = now if self.values is None else {
            name: self._decay * value + (1 - self._decay) * now[name] for name, value in self.values.items()}


def class_weights(section, split, data, seed):
    """loss.class_weights, of which `balanced` is measured on the training examples."""
    if section.get("class_weights") != "balanced":
        return section.get("class_weights")
    labels = split[1][staying(len(split[1]), data, seed)]
    counts = np.bincount(labels, minlength=10)
    return (len(labels) / (np.count_nonzero(counts) * counts)).tolist()


def loss_of(case, state, batch, training=True, weights=None):
    section = case.config.get("loss", {})
    outputs = reference_models.outputs(case.config["model"], state, batch, training)
    weights = torch.tensor(weights) if weights else None
    smoothing = section.get("label_smoothing", 0.0) if training else 0.0
    return F.cross_entropy(outputs.flatten(0, -2), batch["labels"].flatten(), weight=weights,
                           label_smoothing=smoothing)


def is_buffer(name):
    return name.rsplit(".", 1)[1].startswith("running_")


def train(case, splits, values, masks, dtype=torch.float64):
    """A case's training as PyTorch does it, on one thread. In double precision the differences are the rounding
    errors of lacuna alone."""
    torch.set_num_threads(1)
    torch.set_default_dtype(dtype)
    config = case.config
    state = {name: torch.tensor(value, dtype=dtype, requires_grad=not is_buffer(name))
             for name, value in values.items()}
    parameters = {name: value for name, value in state.items() if not is_buffer(name)}
    optimizer = make_optimizer(config["optimizer"], parameters)
    sparsity = Sparsity(config.get("sparsity"), masks, parameters, optimizer)
    average = Average(config["train"]["ema"]) if "ema" in config["train"] else None
    batches, losses = drawn_batches(case, splits), []
    weights = class_weights(config.get("loss", {}), splits["train"], config["data"], config["train"]["seed"])
    for step in range(config["train"]["steps"]):
        batch = joined(list(itertools.islice(batches, config["train"].get("accumulate", 1))))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config["optimizer"], step)
        optimizer.zero_grad()
        loss = loss_of(case, state, batch, weights=weights)
        loss.backward()
        losses.append(loss.item())
        gradients = sparsity.select_gradients()
        if "clip_norm" in config["optimizer"]:
            torch.nn.utils.clip_grad_norm_(parameters.values(), config["optimizer"]["clip_norm"])
        optimizer.step()
        sparsity.apply()
        sparsity.update(step + 1, gradients)
        if average:
            average.update(step + 1, parameters)
    shown = {**state, **average.values} if average else state
    trained = Trained(losses, {name: value.detach().numpy() for name, value in shown.items()})
    if case.kind in ("mnist", "cifar10"):
        pixels, labels = splits["test"]
        batch = {"inputs": normalized(pixels, config["data"]), "labels": torch.tensor(labels)}
        with torch.no_grad():
            trained.test_loss = loss_of(case, shown, batch, training=False, weights=weights).item()
    return trained
