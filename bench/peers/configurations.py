"""The networks of bench/peers as configurations of lacuna, and who competes in which. networks.py holds
the same networks for PyTorch; peers.py compares the numbers of parameters."""
import dataclasses

SPARSITIES = (0.8, 0.9, 0.95)

LAYER = """
    - type: residual
      layers:
        - {type: qkv, out_features: 768}
        - {type: attention, heads: 12}
        - {type: linear, name: output, out_features: 768}
    - {type: layer_norm, name: norm1}
    - type: residual
      layers:
        - {type: linear, name: fc1, out_features: 3072}
        - gelu
        - {type: linear, name: fc2, out_features: 768}
    - {type: layer_norm, name: norm2}"""


@dataclasses.dataclass(frozen=True)
class Network:
    title: str
    batch: int
    share: float  # of the time that is given
    data: str  # the section of a configuration
    model: str
    optimizer: str
    sparse: str  # param_filter
    has_convolutions: bool = False


def images(kind, examples):
    return f"{{type: {kind}, train_size: {examples}, test_size: 16, normalize: standard}}"


def text(context, more=""):
    return f"{{type: text, path: TEXT_FILE, tokenizer: characters, unk: false, context: {context}{more}}}"


NETWORKS = {
    "mlp": Network(
        title="MLP 784-300-100-10, batch 128", batch=128, share=0.14,
        data=images("glyphs", 1280),
        model="""
    - flatten
    - {type: linear, name: fc1, out_features: 300}
    - relu
    - {type: linear, name: fc2, out_features: 100}
    - relu
    - {type: linear, name: fc3, out_features: 10}""",
        optimizer="{type: adam, lr: 0.001}", sparse="[fc1.weight, fc2.weight]"),
    "resnet20": Network(
        title="ResNet-20, 32 × 32 pixels, batch 128", batch=128, share=0.30,
        data=images("colour_glyphs", 256), model="{type: cifar_resnet, depth: 20}",
        optimizer="{type: sgd, lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 0.001}",
        sparse='["layer*.conv*.weight"]', has_convolutions=True),
    "gpt": Network(
        title="GPT, 4 layers of 128, 12 × 64 tokens", batch=12, share=0.20, data=text(64),
        model="{type: gpt2, n_layer: 4, n_head: 4, n_embd: 128, n_positions: 64, resid_pdrop: 0.0, "
              "embd_pdrop: 0.0, attn_pdrop: 0.0}",
        optimizer="{type: adamw, lr: 0.001, weight_decay: 0.1}",
        sparse='["*.attn.*.weight", "*.mlp.*.weight"]'),
    "block": Network(
        title="one encoder layer of BERT-base, 8 × 128 tokens", batch=8, share=0.36,
        data=text(128, ", mask_token: '_', mask_fraction: 0.15"),
        model="\n    - {type: token_embedding, name: embedding, features: 768}" + LAYER +
              "\n    - {type: linear, name: lm_head}",
        optimizer="{type: adamw, lr: 0.0001, weight_decay: 0.1}",
        sparse='["query.weight", "key.weight", "value.weight", "output.weight", "fc1.weight", "fc2.weight"]'),
}

# The key of a contender: (program, kind, sparsity).
PYTORCH = {"dense": "PyTorch, dense", "mask": "PyTorch, weight × mask", "csr": "PyTorch, sparse CSR",
           "bf16": "PyTorch, dense, bf16"}


def title_of(program, kind, sparsity):
    if program == "pytorch":
        return PYTORCH[kind]
    return "lacuna, dense" if kind == "dense" else f"lacuna, {100 * sparsity:.0f} % sparse"


def contenders(name, has_bf16):
    """Those of a network: a mask costs the same at any sparsity; CSR has no convolutions."""
    every = [("pytorch", "dense", 0.0), ("pytorch", "mask", 0.9)]
    if not NETWORKS[name].has_convolutions:
        every.append(("pytorch", "csr", 0.9))
    if has_bf16:
        every.append(("pytorch", "bf16", 0.0))
    return every + [("lacuna", "dense", 0.0)] + [("lacuna", "sparse", sparsity) for sparsity in SPARSITIES]


def configuration(name, sparsity, threads, steps, text_file):
    """A configuration of lacuna. With one thread, batches are prepared by that thread too."""
    network = NETWORKS[name]
    sparse = ""
    if sparsity > 0:
        sparse = f"sparsity: {{algorithm: static, sparsity: {sparsity}, param_filter: {network.sparse}}}\n"
    return (f"data: {network.data.replace('TEXT_FILE', str(text_file))}\n"
            f"model: {network.model}\n"
            f"optimizer: {network.optimizer}\n"
            f"{sparse}"
            f"train: {{steps: {steps}, batch_size: {network.batch}, log_every: 1, eval_every: null, "
            f"threads: {threads}, prefetch: {0 if threads == 1 else 2}}}\n")
