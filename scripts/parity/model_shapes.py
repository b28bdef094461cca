"""Names and shapes of the parameters and buffers of a model that a case trains, as lacuna names them."""


def sequential(layers, channels, side):
    """Of a list of layers on images [channels, side, side]."""
    shapes, flat = {}, None
    for layer in layers:
        kind, name = layer["type"], layer.get("name")
        if kind == "conv2d":
            shapes[f"{name}.weight"] = (layer["out_channels"], channels, layer["kernel"], layer["kernel"])
            channels = layer["out_channels"]
        elif kind == "batch_norm":
            for part in ("weight", "bias", "running_mean", "running_var"):
                shapes[f"{name}.{part}"] = (channels,)
        elif kind == "max_pool":
            side //= layer["kernel"]
        elif kind == "flatten":
            flat = channels * side * side
        elif kind == "global_average_pool":
            flat = channels
        elif kind == "linear":
            shapes[f"{name}.weight"] = (layer["out_features"], flat)
            shapes[f"{name}.bias"] = (layer["out_features"],)
            flat = layer["out_features"]
    return shapes


def _linear(name, out_features, in_features):
    return {f"{name}.weight": (out_features, in_features), f"{name}.bias": (out_features,)}


def _norm(name, features):
    return {f"{name}.weight": (features,), f"{name}.bias": (features,)}


def gpt2(model, vocabulary):
    width = model["n_embd"]
    shapes = {"transformer.wte.weight": (vocabulary, width),
              "transformer.wpe.weight": (model["n_positions"], width)}
    for i in range(model["n_layer"]):
        block = f"transformer.h.{i}"
        shapes |= _norm(f"{block}.ln_1", width) | _linear(f"{block}.attn.c_attn", 3 * width, width)
        shapes |= _linear(f"{block}.attn.c_proj", width, width) | _norm(f"{block}.ln_2", width)
        shapes |= _linear(f"{block}.mlp.c_fc", 4 * width, width)
        shapes |= _linear(f"{block}.mlp.c_proj", width, 4 * width)
    return shapes | _norm("transformer.ln_f", width)


def bert(model, vocabulary):
    width, inner, embeddings = model["hidden_size"], model["intermediate_size"], "bert.embeddings"
    shapes = {f"{embeddings}.word_embeddings.weight": (vocabulary, width),
              f"{embeddings}.position_embeddings.weight": (model["max_position_embeddings"], width),
              f"{embeddings}.token_type_embeddings.weight": (2, width)}
    shapes |= _norm(f"{embeddings}.LayerNorm", width)
    for i in range(model["num_hidden_layers"]):
        block = f"bert.encoder.layer.{i}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _linear(f"{block}.attention.{part}", width, width)
        shapes |= _norm(f"{block}.attention.output.LayerNorm", width)
        shapes |= _linear(f"{block}.intermediate.dense", inner, width)
        shapes |= _linear(f"{block}.output.dense", width, inner) | _norm(f"{block}.output.LayerNorm", width)
    if model.get("head") == "masked_lm":
        head = "cls.predictions"
        shapes |= _linear(f"{head}.transform.dense", width, width) | _norm(f"{head}.transform.LayerNorm", width)
        return shapes | {f"{head}.decoder.bias": (vocabulary,)}
    return shapes | _linear("bert.pooler.dense", width, width) | _linear("classifier", 2, width)
