"""The trainings that are compared: lacuna's configurations, which the reference reads too."""
import dataclasses

import made_data
import model_shapes

STEPS = 50
MEANS, DEVIATIONS = [0.4914, 0.4822, 0.4465], [0.247, 0.2435, 0.2616]
CLASS_WEIGHTS = [1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 1.0, 0.1, 1.0]
MOMENTUM = {"type": "sgd", "lr": 0.02, "momentum": 0.9}
ADAM = {"type": "adam", "lr": 0.001}
SMOOTHED = {"type": "cross_entropy", "label_smoothing": 0.1}
WEIGHTED = {**SMOOTHED, "class_weights": CLASS_WEIGHTS}
MLP = [{"type": "flatten"}, {"type": "linear", "name": "fc1", "out_features": 48}, {"type": "relu"},
       {"type": "linear", "name": "fc2", "out_features": 24}, {"type": "relu"},
       {"type": "linear", "name": "fc3", "out_features": 10}]
MASKED_WEIGHTS = ["fc1.weight", "fc2.weight"]
GPT = {"type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 16, "resid_pdrop": 0.0,
       "embd_pdrop": 0.0, "attn_pdrop": 0.0}
BERT = {"type": "bert", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 32, "max_position_embeddings": 16, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0}
TRANSFORMER_OPTIMIZER = {
    "type": "adamw", "lr": {"type": "cosine_once", "init": 0.003, "minimum": 0.0003, "half_period": 50},
    "warmup": 10, "betas": [0.9, 0.99], "weight_decay": 0.1, "no_decay": ["bias", "norm"], "clip_norm": 1.0}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    config: dict  # without data.dir and the like, which depend on where the files lie
    threads: int = 1

    @property
    def kind(self):
        return self.config["data"]["type"]

    @property
    def hides_words(self):
        return self.kind == "labelled_text" and "mask_fraction" in self.config["data"]

    def shapes(self, splits):
        """Names and shapes of the model's parameters and buffers."""
        model = self.config["model"]
        if isinstance(model, list):
            return model_shapes.sequential(model, *splits["train"][0].shape[1:3])
        vocabulary = splits.get("vocabulary", made_data.VOCABULARY)
        if self.hides_words:
            vocabulary += 1  # for [MASK]
        return getattr(model_shapes, model["type"])(model, vocabulary)

    def initial(self, splits):
        """Initial values, and masks of a sparse case."""
        shapes, sparsity = self.shapes(splits), self.config.get("sparsity")
        if not sparsity:
            return made_data.weights(shapes), {}
        return made_data.weights(shapes), made_data.masks(shapes, sparsity["param_filter"],
                                                          1.0 - sparsity["sparsity"])


def _case(name, data, model, optimizer, batch_size, threads=1, **sections):
    train = {"steps": STEPS, "batch_size": batch_size, "log_every": 1, "eval_every": STEPS, "seed": 3,
             **sections.pop("train", {})}
    config = {"data": data, "model": model, "optimizer": optimizer, "train": train, **sections}
    return Case(name, config, threads)


def _mlp(name, optimizer, batch_size=128, data=(), **sections):
    data = {"type": "mnist", "normalize": {"mean": 0.5, "std": 0.25}, **dict(data)}
    return _case(name, data, MLP, optimizer, batch_size, **sections)


def _static(layout):
    return {"algorithm": "static", "sparsity": 0.9, "layout": layout, "param_filter": MASKED_WEIGHTS}


def _optimizers():
    warm = {"type": "cosine_once", "init": 0.04, "minimum": 0.004, "half_period": 50}
    falling = {"type": "multi_step", "init": 0.002, "milestones": [20, 35], "gamma": 0.1}
    clipped = {"type": "sgd", "lr": 0.5, "momentum": 0.9, "clip_norm": 0.1}
    adam_decay = {**ADAM, "weight_decay": 0.01, "betas": [0.8, 0.99], "eps": 1e-6}
    nesterov = {"type": "sgd", "lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.005}
    adamw = {"type": "adamw", "lr": 0.003, "weight_decay": 0.1}
    quarters = {"accumulate": 4}
    dense = [
        _mlp("sgd", {"type": "sgd", "lr": 0.05}),
        _mlp("sgd_dampening", {**MOMENTUM, "dampening": 0.5}),
        _mlp("sgd_nesterov_decay", nesterov),
        _mlp("adam", ADAM),
        _mlp("adam_decay", adam_decay),
        _mlp("adamw", adamw),
        _mlp("adamw_no_decay", {**adamw, "weight_decay": 0.5, "no_decay": ["bias"]}),
        _mlp("warmup_cosine", {"type": "sgd", "lr": warm, "warmup": 10, "momentum": 0.9}),
        _mlp("multi_step", {"type": "adam", "lr": falling}),
        _mlp("label_smoothing", MOMENTUM, loss=SMOOTHED),
        _mlp("class_weights", MOMENTUM, loss=WEIGHTED),
        _mlp("balanced_weights", MOMENTUM, data={"limit": 300}, loss={**SMOOTHED, "class_weights": "balanced"}),
        _mlp("balanced_sampling", MOMENTUM, 40, data={"limit": 333, "sampling": "balanced"}, train={"shards": 3}),
        _mlp("clip_norm", clipped),
        _mlp("accumulate", ADAM, 32, train=quarters),
        _mlp("accumulate_clip", clipped, 32, train=quarters),
        _mlp("accumulate_class_weights", MOMENTUM, 32, train=quarters, loss=WEIGHTED),
        _mlp("average", MOMENTUM, train={"ema": 0.9}),
        _mlp("average_late", MOMENTUM, train={"ema": {"decay": 0.9, "start": 20}}),
        _mlp("last_batch", MOMENTUM, 96),
        _mlp("drop_last", MOMENTUM, 96, train={"drop_last": True}),
    ]
    sparse = [
        _mlp("csr_sgd_nesterov_decay", nesterov, sparsity=_static("csr")),
        _mlp("csr_adam_decay", adam_decay, sparsity=_static("csr")),
        _mlp("csr_adamw", adamw, sparsity=_static("csr")),
        _mlp("csr_clip_norm", clipped, sparsity=_static("csr")),
        _mlp("csr_average", MOMENTUM, sparsity=_static("csr"), train={"ema": 0.9}),
        _mlp("csr_accumulate", ADAM, 32, sparsity=_static("csr"), train=quarters),
        _mlp("masked_adamw", adamw, sparsity=_static("masked")),
    ] + [_mlp(f"rigl_{layout}", ADAM,
              sparsity={**_static(layout), "algorithm": "rigl", "update": {"freq": 10, "stop": 45},
                        "drop_fraction": 0.3}) for layout in ("csr", "masked")]
    return dense + sparse


def _threads_and_shards():
    shards = {"shards": 4}
    return [
        _mlp("threads", MOMENTUM, threads=2),
        _mlp("shards", MOMENTUM, train=shards),
        _mlp("shards_odd", MOMENTUM, 50, train={"shards": 3}, threads=2),
        _mlp("shards_class_weights", MOMENTUM, train=shards, loss=WEIGHTED),
        _mlp("shards_csr", ADAM, train=shards, sparsity=_static("csr"), threads=2),
    ]


def _convolutions():
    layers = []
    for name, channels in (("1", 8), ("2", 12)):
        layers += [{"type": "conv2d", "name": "conv" + name, "out_channels": channels, "kernel": 3, "padding": 1,
                    "bias": False},
                   {"type": "batch_norm", "name": "norm" + name}, {"type": "relu"},
                   {"type": "max_pool", "kernel": 2}]
    layers += [{"type": "global_average_pool"}, {"type": "linear", "name": "fc", "out_features": 10}]
    data = {"type": "cifar10", "normalize": {"mean": MEANS, "std": DEVIATIONS}}
    augmented = {**data, "augment": {"crop": 4, "flip": True}}
    # Small enough that rounding errors do not grow from step to step.
    sgd = {**MOMENTUM, "lr": 0.005, "weight_decay": 0.001}
    return [
        _case("convolutions", data, layers, sgd, 32),
        _case("convolutions_threads", data, layers, sgd, 32, threads=2),
        _case("convolutions_shards", data, layers, sgd, 32, train={"shards": 4}),
        _case("augment", augmented, layers, sgd, 32),
        _case("augment_held_out", {**augmented, "limit": 300, "validation": 40}, layers, sgd, 32),
        # The weights stay, so only the running moments change: over an epoch of ten batches.
        _case("moments", data, layers, {"type": "sgd", "lr": 0.0}, 32, train={"steps": 10, "eval_every": 10}),
    ]


def _transformers():
    window = {"type": "tokens", "vocab_size": made_data.VOCABULARY, "context": 16}
    hidden = {**window, "mask_fraction": 0.15, "mask_id": made_data.MASK_ID}
    masked = {**BERT, "head": "masked_lm"}
    sentences = {"type": "labelled_text", "tokenizer": "words", "max_length": 16}
    hidden_words = {**sentences, "mask_fraction": 0.3, "validation": 50}
    return [
        _case("gpt", window, GPT, TRANSFORMER_OPTIMIZER, 16),
        _case("gpt_accumulate", window, GPT, TRANSFORMER_OPTIMIZER, 8, train={"accumulate": 2}),
        _case("gpt_shards", window, GPT, TRANSFORMER_OPTIMIZER, 16, train={"shards": 4}, threads=2),
        _case("bert_masked", hidden, masked, TRANSFORMER_OPTIMIZER, 16),
        _case("bert_masked_shards", hidden, masked, TRANSFORMER_OPTIMIZER, 16, train={"shards": 4}),
        _case("bert_classes", sentences, BERT, TRANSFORMER_OPTIMIZER, 16),
        _case("bert_masked_sentences", hidden_words, masked, TRANSFORMER_OPTIMIZER, 16),
        # Batches hide different numbers of words, so a mean over batches is none over words.
        _case("bert_masked_accumulate", hidden_words, masked, TRANSFORMER_OPTIMIZER, 8, train={"accumulate": 2}),
    ]


CASES = {case.name: case for case in _optimizers() + _threads_and_shards() + _convolutions() + _transformers()}
