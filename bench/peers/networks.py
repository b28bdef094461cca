"""The networks of bench/peers in PyTorch, as its users write them, and a step of training."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

CHARACTERS = 65  # of the text; the encoder has one more, which hides others


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.added = stride, (channels - inputs) // 2

    def forward(self, x):
        shortcut = x
        if self.stride > 1:
            shortcut = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.added, self.added))
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + shortcut)


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for channels in (16, 32, 64):
        for block in range(3):
            layers.append(BasicBlock(inputs, channels, 2 if block == 0 and channels > 16 else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def attention(q, k, v, heads, mask):
    """Of [examples, tokens, features]; `mask` is added to the scores."""
    examples, tokens, features = q.shape
    q, k, v = (t.view(examples, tokens, heads, -1).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(features // heads)
    if mask is not None:
        scores = scores + mask
    return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(examples, tokens, features)


class GptLayer(nn.Module):
    def __init__(self, features, heads, tokens):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.c_attn, self.c_proj = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.fc, self.proj = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
        self.register_buffer("mask", torch.full((tokens, tokens), -math.inf).triu(1))

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).split(x.shape[-1], dim=-1)
        x = x + self.c_proj(attention(q, k, v, self.heads, self.mask))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, features, heads, tokens):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(CHARACTERS, features), nn.Embedding(tokens, features)
        self.h = nn.Sequential(*(GptLayer(features, heads, tokens) for _ in range(layers)))
        self.ln_f = nn.LayerNorm(features)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        return F.linear(self.ln_f(self.h(x)), self.wte.weight)


class Encoder(nn.Module):
    """One layer of BERT-base between an embedding and a head of a few characters."""

    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(CHARACTERS + 1, features)
        self.query, self.key, self.value, self.output = (nn.Linear(features, features) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.lm_head = nn.Linear(features, CHARACTERS + 1)

    def forward(self, ids):
        x = self.embedding(ids)
        x = self.norm1(x + self.output(attention(self.query(x), self.key(x), self.value(x), self.heads, None)))
        return self.lm_head(self.norm2(x + self.fc2(F.gelu(self.fc1(x)))))


class SparseLinear(nn.Module):
    """A linear layer of a CSR matrix. PyTorch's optimizers do not take such parameters on CPUs, so they
    see the nonzeros: `values` is the parameter, and collect() hands it the product's gradient."""

    def __init__(self, dense, mask):
        super().__init__()
        matrix = (dense.weight.detach() * mask).to_sparse_csr()
        self.rows, self.columns, self.size = matrix.crow_indices(), matrix.col_indices(), matrix.shape
        self.values = nn.Parameter(matrix.values().clone())
        self.bias = dense.bias
        self.matrix = None

    def forward(self, x):
        self.matrix = torch.sparse_csr_tensor(self.rows, self.columns, self.values.detach(),
                                              self.size).requires_grad_()
        flat = x.reshape(-1, x.shape[-1])
        y = torch.sparse.mm(self.matrix, flat.t()).t()
        return y.reshape(*x.shape[:-1], -1) + self.bias

    def collect(self):
        self.values.grad = self.matrix.grad.values()


def build(name):
    """The network, its sparse layers, its optimizer and one batch of noise."""
    torch.manual_seed(0)
    if name == "mlp":
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(),
                              nn.Linear(100, 10))
        sparse = [(model, "1"), (model, "3")]
        inputs, labels = torch.randn(128, 1, 28, 28), torch.randint(10, (128,))
        return model, sparse, lambda p: torch.optim.Adam(p, lr=1e-3), inputs, labels
    if name == "resnet20":
        model = resnet20()
        sparse = [(block, conv) for block in model if isinstance(block, BasicBlock) for conv in ("conv1", "conv2")]
        # The channels last are PyTorch's faster order here.
        model = model.to(memory_format=torch.channels_last)
        inputs = torch.randn(128, 3, 32, 32).contiguous(memory_format=torch.channels_last)
        labels = torch.randint(10, (128,))
        return model, sparse, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True,
                                                        weight_decay=1e-3), inputs, labels
    if name == "gpt":
        model = Gpt(4, 128, 4, 64)
        sparse = [(layer, part) for layer in model.h for part in ("c_attn", "c_proj", "fc", "proj")]
        inputs, labels = torch.randint(CHARACTERS, (2, 12, 64))
        return model, sparse, lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.1), inputs, labels
    assert name == "block", name
    model = Encoder(768, 12)
    sparse = [(model, part) for part in ("query", "key", "value", "output", "fc1", "fc2")]
    inputs, labels = torch.randint(CHARACTERS, (2, 8, 128))
    labels[torch.rand(labels.shape) >= 0.15] = -100  # no label: 15 % of the characters are hidden
    return model, sparse, lambda p: torch.optim.AdamW(p, lr=1e-4, weight_decay=0.1), inputs, labels


class Trainee:
    """A network that trains on one batch, over and over."""

    def __init__(self, name, kind, sparsity):
        self.model, places, optimizer, self.inputs, self.labels = build(name)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        self.kind = kind
        self.sparse = []
        for owner, part in places if kind in ("mask", "csr") else []:
            layer = getattr(owner, part)
            mask = (torch.rand_like(layer.weight) >= sparsity).float()
            if kind == "mask":
                prune.custom_from_mask(layer, "weight", mask)
            else:
                setattr(owner, part, SparseLinear(layer, mask))
                self.sparse.append(getattr(owner, part))
        self.optimizer = optimizer(self.model.parameters())

    def loss(self):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.kind == "bf16"):
            outputs = self.model(self.inputs)
        return F.cross_entropy(outputs.float().flatten(0, -2), self.labels.flatten())

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        for layer in self.sparse:
            layer.collect()
        self.optimizer.step()
        return loss.item()
