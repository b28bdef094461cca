"""Random small configurations over all kinds of data, model, loss, optimizer and sparsity."""
import random as random_numbers

import sparsities

KINDS = ("glyphs", "convolution", "convolution1d", "gpt2", "bert", "vit", "llama", "csv", "hdf5",
         "images", "masked_lm", "pairs", "tokens", "regression", "resnet", "idx", "cifar",
         "signals")
STEPS = 20
COLOUR_KINDS = ("convolution", "resnet", "vit")


def mlp(random, outputs):
    middle = {"type": "dropout", "p": 0.2} if random.random() < 0.5 else "relu"
    layers = ["flatten", {"type": "linear", "name": "fc1", "out_features": 24}, middle,
              {"type": random.choice(["batch_norm", "layer_norm"]), "name": "norm"},
              {"type": "linear", "name": "fc2", "out_features": 16,
               "bias": random.choice([True, False])},
              random.choice(["relu", "gelu", "silu", "squared_relu"])]
    if random.random() < 0.3:
        layers.append({"type": "batch_norm", "name": "late"})
    if random.random() < 0.3:  # one weight, two layers
        layers += [{"type": "linear", "name": "fc3", "out_features": 16},
                   {"type": "batch_norm", "name": "between"}, "relu",
                   {"type": "linear", "name": "fc4", "tied_to": "fc3"}, "relu"]
    return layers + [{"type": "linear", "name": "out", "out_features": outputs}]


def convolutions(random):
    return [{"type": "conv2d", "name": "conv1", "out_channels": 8, "kernel": 3, "stride": 2,
             "padding": 1},
            {"type": "batch_norm", "name": "bn"}, "relu",
            {"type": "conv2d", "name": "conv2", "out_channels": 16,
             "kernel": random.choice([1, 3, [3, 2]]), "groups": random.choice([1, 1, 2])},
            "relu", "global_average_pool",
            {"type": "linear", "name": "fc", "out_features": 12}, "relu",
            {"type": "linear", "name": "out", "out_features": 10}]


def convolutions_of_rows():
    return [{"type": "conv1d", "name": "conv1", "out_channels": 16, "kernel": 5, "stride": 2,
             "padding": 2},
            {"type": "batch_norm", "name": "bn"}, "relu", {"type": "max_pool", "kernel": 2},
            {"type": "conv1d", "name": "conv2", "out_channels": 16, "kernel": 3}, "relu",
            "global_average_pool", {"type": "linear", "name": "out"}]


def augmentation(random):
    if random.random() < 0.4:
        return {}
    every = {"crop": 2, "flip": True, "cutout": 3, "mixup": 0.2,
             "rand_augment": {"operations": 2, "magnitude": 9}}
    return {name: value for name, value in every.items() if random.random() < 0.4}


def bert(random, positions, layers):
    return {"type": "bert", "hidden_size": 16, "num_hidden_layers": layers,
            "num_attention_heads": 2, "intermediate_size": 32,
            "max_position_embeddings": positions, "pooling": random.choice(["cls", "mean"])}


def sentences(random, kind, folder):
    streamed = random.choice([True, False])
    if kind == "pairs":
        data = {"type": "labelled_text", "train": f"{folder}/pairs.csv",
                "text_column": ["first", "second"], "label_column": "y", "tokenizer": "words",
                "max_length": 20, "validation": 40, "cls": True, "streamed": streamed}
        return data, bert(random, 20, 1)
    data = {"type": "labelled_text", "train": f"{folder}/labelled.txt", "tokenizer": "words",
            "max_length": 12, "validation": 40}
    model = bert(random, 12, 1 if kind == "masked_lm" else 2)
    if kind == "masked_lm":
        data["mask_fraction"] = 0.15
        model["head"] = "masked_lm"
        del model["pooling"]
    else:
        data.update(cls=True, streamed=streamed)
    return data, model


def language(random, kind, folder):
    gpt2 = {"type": "gpt2", "n_layer": random.choice([1, 2]), "n_head": 2, "n_embd": 16,
            "n_positions": 16, "tie_word_embeddings": random.choice([True, False])}
    if kind == "tokens":
        return {"type": "tokens", "dir": f"{folder}/tokens", "vocab_size": random.choice([50, 64]),
                "context": 12, "stride": random.choice([1, 12])}, gpt2
    data = {"type": "text", "path": f"{folder}/text.txt", "context": 16, "validation": 0.1,
            "test": 0.1, "tokenizer": random.choice(["characters", "words", "bytes"])}
    if kind == "gpt2":
        return data, gpt2
    return data, {"type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4,
                  "num_key_value_heads": random.choice([1, 2, 4]), "hidden_size": 16,
                  "intermediate_size": 24}


def pictures(random, kind, folder):
    if kind in COLOUR_KINDS:
        data = {"type": "colour_glyphs", "train_size": random.randint(90, 120), "test_size": 33,
                "validation": 21}
    elif kind == "cifar":
        data = {"type": "cifar10", "dir": f"{folder}/cifar", "validation": 19}
    elif kind == "idx":
        data = {"type": "mnist", "dir": f"{folder}/idx", "validation": 0.2}
    elif kind == "images":
        data = {"type": "image_folder", "dir": f"{folder}/images", "size": [16, 12],
                "channels": random.choice([1, 3])}
    else:
        data = {"type": "glyphs", "train_size": random.randint(110, 230), "test_size": 61,
                "validation": random.choice([0.2, 31])}
    augment = {} if kind == "convolution1d" else augmentation(random)
    if augment:
        data["augment"] = augment
    if kind == "vit":
        return data, {"type": "vit", "patch_size": 8, "hidden_size": 16, "num_hidden_layers": 1,
                      "num_attention_heads": 2, "intermediate_size": 32,
                      "hidden_dropout_prob": random.choice([0, 0.1])}
    if kind == "resnet":
        return data, {"type": "cifar_resnet", "depth": 8, "width": 8}
    if kind in ("convolution", "cifar"):
        return data, convolutions(random)
    if kind == "convolution1d":
        return data, convolutions_of_rows()
    return data, mlp(random, 2 if kind == "images" else 10)


def tables(random, kind, folder):
    arrays = f"{folder}/arrays.h5"
    if kind == "csv":
        return {"type": "csv", "train": f"{folder}/table.csv", "validation": 0.2,
                "normalize": random.choice(["none", "standard"])}, mlp(random, 2)
    if kind == "regression":
        return {"type": "hdf5", "path": arrays, "train_inputs": "real_inputs",
                "train_targets": "real_targets", "task": "regression", "validation": 0.2,
                "normalize_targets": random.choice([True, False])}, mlp(random, 2)
    if kind == "signals":
        return {"type": "hdf5", "path": arrays, "train_inputs": "signals",
                "train_targets": "signal_targets", "validation": 0.2}, convolutions_of_rows()
    return {"type": "hdf5", "path": arrays, "test_inputs": "test/inputs",
            "test_targets": "test/targets", "validation": 0.1}, mlp(random, 3)


FILTERS = {
    "convolution": ["conv*.weight", "fc.weight"], "cifar": ["conv*.weight", "fc.weight"],
    "convolution1d": ["conv*.weight"], "signals": ["conv*.weight"],
    "resnet": ["layer*.conv*.weight"], "gpt2": ["*.attn.*.weight", "*.mlp.*.weight"],
    "llama": ["*.mlp.*.weight"], "tokens": ["*.mlp.*.weight"],
    "vit": ["*.intermediate.dense.weight", "*.query.weight"],
    "bert": ["bert.encoder.*.dense.weight"], "masked_lm": ["bert.encoder.*.dense.weight"],
    "pairs": ["bert.encoder.*.dense.weight"]}


def loss_of(random, kind, data):
    if kind == "regression":
        return "mse"
    if "mixup" in data.get("augment", {}):
        return None
    if kind in ("glyphs", "idx", "convolution"):
        return random.choice([None, {"type": "cross_entropy", "label_smoothing": 0.1},
                              {"type": "cross_entropy", "ignore_index": 3}])
    if kind in ("hdf5", "bert"):
        return random.choice([None, {"type": "cross_entropy", "class_weights": [1.0, 2.5, 0.5]}])
    return None


def optimizer_of(random):
    optimizer = random.choice([
        {"type": "adam", "lr": 0.003},
        {"type": "adam", "lr": 0.003, "regrown": "own"},
        {"type": "adamw", "lr": 0.003, "regrown": {"age": "own", "warmup": 4}},
        {"type": "sgd", "lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
        {"type": "adamw", "lr": 0.01, "warmup": 3, "clip_norm": 1.0,
         "no_decay": ["bias", "norm"]},
        {"type": "sgd", "lr": 0.1, "groups": [{"params": ["*.bias"], "lr": 0.02}]}])
    if random.random() < 0.5:
        optimizer["lr"] = random.choice([
            [0.01, 0.005, 0.02], {"type": "cycling", "values": [0.01, 0.001, 0.02]},
            {"type": "exp", "init": 0.02, "gamma": -0.1, "final": 0.001},
            {"type": "power", "init": 0.02, "beta": 0.9},
            {"type": "cosine", "init": 0.02, "half_period": 7},
            {"type": "cosine_once", "init": 0.01, "half_period": 15},
            {"type": "multi_step", "init": 0.02, "milestones": [3, 9, 10]},
            {"type": "linear", "init": 0.02, "slope": -0.0005}])
    return optimizer


def training_of(random, data):
    train = {"steps": STEPS, "batch_size": random.choice([7, 8, 16, 13]),
             "accumulate": random.choice([1, 1, 2, 3]), "log_every": random.choice([3, 5]),
             "eval_every": random.choice([2, 6, 7, 10, "1 epoch"]),
             "checkpoint": {"every": random.choice([1, 3, 4, 7, "1 epoch"]), "keep_last": 3},
             "seed": random.randint(0, 99), "drop_last": random.choice([True, False]),
             "prefetch": random.choice([0, 2]), "eval_batch_size": random.choice([1000, 7, 16])}
    if random.random() < 0.3:
        train["ema"] = random.choice([0.9, {"decay": 0.99, "start": 5}])
    if random.random() < 0.2:
        train["shards"] = random.choice([1, 2, 4])
    if random.random() < 0.2:
        train["tensorboard"] = True
    if random.random() < 0.3 and "validation" in data:
        train["checkpoint"]["keep_best"] = True
    if random.random() < 0.2 and "validation" in data:
        train["early_stopping"] = {"patience": random.choice([1, 2, 3]), "min_delta": 0.02}
    return train


def configuration(seed, index, folder):
    """(kind, configuration) number `index`; every 18 in a row hold each kind of data once."""
    random = random_numbers.Random(f"{seed}/{index}")
    kind = KINDS[index % len(KINDS)]
    if kind in ("bert", "masked_lm", "pairs"):
        data, model = sentences(random, kind, folder)
    elif kind in ("gpt2", "llama", "tokens"):
        data, model = language(random, kind, folder)
    elif kind in ("csv", "hdf5", "regression", "signals"):
        data, model = tables(random, kind, folder)
    else:
        data, model = pictures(random, kind, folder)
    config = {"data": data, "model": model, "optimizer": optimizer_of(random),
              "train": training_of(random, data)}
    loss = loss_of(random, kind, data)
    if loss:
        config["loss"] = loss
    sparsity = sparsities.sparsity_of(random, random.choice(sparsities.KINDS),
                                      FILTERS.get(kind, ["*fc*.weight"]))
    if sparsity is not None:
        config["sparsity"] = sparsity
    elif kind in ("glyphs", "csv", "hdf5", "regression"):
        config["sparsifiers"] = [
            {"tensor": "fc1.output", "sparsifier": {"type": "nm", "n": 2, "m": 4}},
            {"tensor": "fc2.weight", "every": 2, "sparsifier": {
                "type": random.choice(["scalar_fraction", "random_fraction"]), "fraction": 0.5}}]
    return kind, config
