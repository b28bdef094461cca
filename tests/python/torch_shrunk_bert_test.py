"""A shrunk BERT, written for PyTorch as it is usually defined, gives there what it gives here."""

import numpy as np
import pytest
import torch
from safetensors_file import read_safetensors
from shrunk_runs import BERT, assert_close, bert_outputs, shrunk_bert, tokens
from torch import nn
from torch.nn import functional

import lacuna as lc


class Embeddings(nn.Module):
    def __init__(self, vocabulary, positions, features):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, features)
        self.position_embeddings = nn.Embedding(positions, features)
        self.token_type_embeddings = nn.Embedding(2, features)
        self.LayerNorm = nn.LayerNorm(features, eps=1e-12)

    def forward(self, ids, types):
        places = torch.arange(ids.shape[1])
        x = self.word_embeddings(ids) + self.position_embeddings(places)
        return self.LayerNorm(x + self.token_type_embeddings(types))


class Encoder(nn.Module):
    """A layer with so many heads of `size` features and so many feed-forward units."""

    def __init__(self, features, heads, size, units):
        super().__init__()
        inner = heads * size
        projections = {name: nn.Linear(features, inner) for name in ("query", "key", "value")}
        self.attention = nn.ModuleDict(
            {"self": nn.ModuleDict(projections), "output": self.back(inner, features)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(features, units)})
        self.output = self.back(units, features)
        self.heads, self.size = heads, size

    @staticmethod
    def back(inner, features):
        norm = nn.LayerNorm(features, eps=1e-12)
        return nn.ModuleDict({"dense": nn.Linear(inner, features), "LayerNorm": norm})

    def attend(self, x, mask):
        batch, length, _ = x.shape
        dims = (batch, length, self.heads, self.size)
        q, k, v = (
            self.attention["self"][name](x).view(dims).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1)

    def forward(self, x, mask):
        output = self.attention["output"]
        x = output["LayerNorm"](x + output["dense"](self.attend(x, mask)))
        units = functional.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](x + self.output["dense"](units))


class Bert(nn.Module):
    def __init__(self, vocabulary, positions, features, layers, labels):
        super().__init__()
        self.bert = nn.ModuleDict(
            {
                "embeddings": Embeddings(vocabulary, positions, features),
                "encoder": nn.ModuleDict(
                    {"layer": nn.ModuleList([Encoder(features, *layer) for layer in layers])}
                ),
                "pooler": nn.ModuleDict({"dense": nn.Linear(features, features)}),
            }
        )
        self.classifier = nn.Linear(features, labels)

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.bert["embeddings"](input_ids, token_type_ids)
        for layer in self.bert["encoder"]["layer"]:
            x = layer(x, attention_mask)
        return self.classifier(torch.tanh(self.bert["pooler"]["dense"](x[:, 0])))


@pytest.fixture(scope="module")
def shrunk(tmp_path_factory):
    return shrunk_bert(tmp_path_factory.mktemp("bert"))


def test_a_shrunk_bert_gives_the_same_in_pytorch(shrunk, tmp_path):
    whole = BERT["model"]
    features, size = whole["hidden_size"], whole["hidden_size"] // whole["num_attention_heads"]
    lc.export(shrunk, "safetensors", tmp_path / "small.safetensors")
    state = read_safetensors(tmp_path / "small.safetensors")
    prefixes = [f"bert.encoder.layer.{i}." for i in range(2)]
    heads = [state[p + "attention.self.query.weight"].shape[0] // size for p in prefixes]
    units = [state[p + "intermediate.dense.weight"].shape[0] for p in prefixes]
    assert sum(heads) < 2 * whole["num_attention_heads"] and min(heads) >= 1
    assert sum(units) < 2 * whole["intermediate_size"]

    vocabulary = state["bert.embeddings.word_embeddings.weight"].shape[0]
    layers = [(count, size, width) for count, width in zip(heads, units)]
    theirs = Bert(vocabulary, whole["max_position_embeddings"], features, layers, 2)
    theirs.load_state_dict(state)
    inputs = tokens(8, 11, vocabulary)
    given = {name: torch.from_numpy(array) for name, array in inputs.items()}
    with torch.no_grad():
        expected = theirs(**given).numpy()
        unmasked = theirs(**{**given, "attention_mask": torch.ones(8, 11)}).numpy()
    found = bert_outputs(lc.load(shrunk), inputs)
    assert_close(found, expected)
    assert np.abs(found[1::2] - unmasked[1::2]).max() > 1e-3  # padding is compared, too
