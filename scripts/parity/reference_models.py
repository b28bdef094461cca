"""Models in PyTorch, as functions of the parameters that lacuna's names stand for."""
import math

import torch
import torch.nn.functional as F


def linear(p, name, x):
    return F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])


def norm(p, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.weight"], p[f"{name}.bias"], eps)


def sequential(layers, p, x, training):
    for layer in layers:
        kind, name = layer["type"], layer.get("name")
        if kind == "flatten":
            x = x.flatten(1)
        elif kind == "linear":
            x = linear(p, name, x)
        elif kind == "relu":
            x = F.relu(x)
        elif kind == "conv2d":
            x = F.conv2d(x, p[f"{name}.weight"], padding=layer["padding"])
        elif kind == "batch_norm":
            x = F.batch_norm(x, p[f"{name}.running_mean"], p[f"{name}.running_var"], p[f"{name}.weight"],
                             p[f"{name}.bias"], training=training)
        elif kind == "max_pool":
            x = F.max_pool2d(x, layer["kernel"])
        elif kind == "global_average_pool":
            x = x.mean((2, 3))
        else:
            raise ValueError(f"layer {kind}: not known here")
    return x


def attention(q, k, v, heads, hidden):
    """`hidden`: True where a key is not seen, [batch, 1, queries or 1, keys]."""
    batch, length, width = q.shape
    q, k, v = (x.view(batch, length, heads, width // heads).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(batch, length, width)


def gpt2(model, p, batch):
    """Logits of the next token at each place."""
    ids = batch["input_ids"]
    length = ids.shape[1]
    x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][:length]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)[None, None]
    for i in range(model["n_layer"]):
        block = f"transformer.h.{i}"
        q, k, v = linear(p, f"{block}.attn.c_attn", norm(p, f"{block}.ln_1", x, 1e-5)).chunk(3, -1)
        x = x + linear(p, f"{block}.attn.c_proj", attention(q, k, v, model["n_head"], later))
        inner = F.gelu(linear(p, f"{block}.mlp.c_fc", norm(p, f"{block}.ln_2", x, 1e-5)), approximate="tanh")
        x = x + linear(p, f"{block}.mlp.c_proj", inner)
    return norm(p, "transformer.ln_f", x, 1e-5) @ p["transformer.wte.weight"].t()


def bert(model, p, batch):
    """Logits of the hidden tokens, or of the sentence's class."""
    ids, eps, embeddings = batch["input_ids"], 1e-12, "bert.embeddings"
    x = (p[f"{embeddings}.word_embeddings.weight"][ids] + p[f"{embeddings}.token_type_embeddings.weight"][0] +
         p[f"{embeddings}.position_embeddings.weight"][:ids.shape[1]])
    x = norm(p, f"{embeddings}.LayerNorm", x, eps)
    padding = (batch["attention_mask"] == 0)[:, None, None]
    for i in range(model["num_hidden_layers"]):
        block = f"bert.encoder.layer.{i}"
        q, k, v = (linear(p, f"{block}.attention.self.{part}", x) for part in ("query", "key", "value"))
        seen = linear(p, f"{block}.attention.output.dense",
                      attention(q, k, v, model["num_attention_heads"], padding))
        x = norm(p, f"{block}.attention.output.LayerNorm", x + seen, eps)
        inner = linear(p, f"{block}.output.dense", F.gelu(linear(p, f"{block}.intermediate.dense", x)))
        x = norm(p, f"{block}.output.LayerNorm", x + inner, eps)
    if model.get("head") != "masked_lm":
        return linear(p, "classifier", torch.tanh(linear(p, "bert.pooler.dense", x[:, 0])))
    head = "cls.predictions"
    x = norm(p, f"{head}.transform.LayerNorm", F.gelu(linear(p, f"{head}.transform.dense", x)), eps)
    return x @ p[f"{embeddings}.word_embeddings.weight"].t() + p[f"{head}.decoder.bias"]


def outputs(model, p, batch, training=True):
    if isinstance(model, list):
        return sequential(model, p, batch["inputs"], training)
    return {"gpt2": gpt2, "bert": bert}[model["type"]](model, p, batch)
