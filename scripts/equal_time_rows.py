"""The comparisons that scripts/equal_time.py makes: networks, data, both sides and what is tried for each.

A row has a budget of seconds, or of steps if both sides take equally many. `choices` are templates of arguments of
`lacuna train --set`, into which $steps, $warmup and the chosen value (as $decay) are inserted. A side has networks,
each with its arguments; the values of `first` are tried in all combinations, and then each value of `then` by itself,
with the best combination. Each value of `last` is tried for the whole budget, with the settings of the best run of each
of the best two networks: a trial of a tenth of the budget may end before networks overfit, so it shows little about
decay. Both sides of a row have the same number of trials, and of values in `last`.
"""
import dataclasses


@dataclasses.dataclass
class Side:
    networks: dict        # name -> arguments
    defaults: dict        # choice -> value
    first: dict           # choice -> values, in all combinations with each other and the networks
    then: dict            # choice -> values, one at a time from the best of the first
    always: tuple = ()    # arguments of every run
    last: dict = dataclasses.field(default_factory=dict)  # choice -> values, for the best two networks and the whole budget

    def trials(self):
        count = len(self.networks)
        for values in self.first.values():
            count *= len(values)
        return count + sum(len(values) for values in self.then.values())

    def last_runs(self):
        return [(key, str(value)) for key, values in self.last.items() for value in values]


@dataclasses.dataclass
class Row:
    name: str
    title: str
    config: str           # a file below the repository
    data: tuple           # arguments; $data is the folder of the data
    choices: dict         # choice -> templates of arguments
    sides: dict
    metric: str           # of summary.json, chosen by; an accuracy is better if larger, a loss if smaller
    reported: str         # of summary.json, in the table
    seconds: float = 0.0
    steps: int = 0
    trial: float = 0.1    # part of the budget that a trial takes
    always: tuple = ()
    goal: float = 0.0     # sparse is to be better by so much, in the unit of the table
    conditions: str = ""  # what both sides have in common, for the table
    predicted: str = ""   # written before the first run

    @property
    def larger_is_better(self):
        return "accuracy" in self.metric


def mask(algorithm, text, layout):
    return f"sparsity={{algorithm: {algorithm}, {text}, layout: {layout}, " \
           "drop_fraction: {type: cosine_once, init: 0.3, half_period: $three_quarters}}"


def unstructured(sparsity, algorithm="set", more=""):
    return mask(algorithm, f"sparsity: {sparsity}{more}", "csr")


def grouped(n, m, algorithm="set"):
    return mask(algorithm, f"pattern: {{type: nm, n: {n}, m: {m}, group: 8}}", "nm")


def blocks(sparsity, algorithm="set"):
    return mask(algorithm, f"sparsity: {sparsity}, pattern: {{type: block, rows: 16, cols: 16}}", "block")


# By density alone: a network's own width is the base.
def by_density(width):
    return f"parametrization={{type: sparse_mup, base_width: {width}, width: {width}}}"


def mlp(width, *arguments):
    return (f"model.1.out_features={width}", f"model.3.out_features={width}", *arguments)


def gpt(width, *arguments):
    return (f"model.n_embd={width}", *arguments)


def transformer(width, *arguments):
    """BERT and ViT with an MLP of twice the width."""
    return (f"model.hidden_size={width}", f"model.intermediate_size={2 * width}", *arguments)


def resnet(width, *arguments):
    return (f"model={{type: cifar_resnet, depth: 20, width: {width}}}", *arguments)


def sparse(make, width, sparsity):
    return make(width, sparsity, by_density(width))


CIFAR10 = ("data.dir=$data",)
SHAKESPEARE = ("data.path=$data/text/tinyshakespeare.txt",)
SST2 = tuple(f"data.{key}=$data/text/sst2.{file}.txt"
             for key, file in (("train", "train"), ("validation", "dev"), ("test", "test")))
LR = ("optimizer.lr={type: cosine_once, init: $lr, minimum: 0.0, half_period: $steps}",)
MLP_CHOICES = {
    "lr": LR,
    "decay": ("optimizer.weight_decay=$decay",),
    "init": ("model.1.init=$init", "model.3.init=$init"),
    "drop": ("sparsity.drop_fraction.init=$drop",),
}
GPT_CHOICES = {
    "lr": LR,
    "decay": ("optimizer.weight_decay=$decay",),
    "deviation": ("model.initializer_range=$deviation",),
    "dropout": tuple(f"model.{place}_pdrop=$dropout" for place in ("resid", "embd", "attn")),
}
BERT_CHOICES = {
    "lr": LR,
    "decay": ("optimizer.weight_decay=$decay",),
    "dropout": ("model.hidden_dropout_prob=$dropout",),
}
VIT_CHOICES = {"lr": LR, "decay": ("optimizer.weight_decay=$decay",)}
RESNET_CHOICES = VIT_CHOICES
WARMUP = "optimizer.warmup=$warmup"


def mlp_row(seconds, crop, dense_then, sparse_then, dense_last, sparse_last):
    return Row(
        name=f"mlp_{seconds}s",
        title=f"MLP on CIFAR-10, {seconds} s",
        config="configs/cifar10_mlp.yaml",
        data=CIFAR10,
        metric="validation_accuracy",
        reported="test_accuracy",
        seconds=seconds,
        goal=2.0,
        choices=MLP_CHOICES,
        always=(WARMUP, "data.augment={crop: 4, flip: true}" if crop else "data.augment={flip: true}"),
        conditions="AdamW, batches of 128; 45,000 images, flipped at random" + (", and cropped" if crop else "")
                   + "; another 5,000 select the settings.",
        predicted="sparse by 3 points; 1:16 in groups of 8 or csr at 95 %, twice as wide",
        sides={
            "dense": Side(
                networks={"512": mlp(512), "1024": mlp(1024)},
                always=("sparsity=null",),
                defaults={"decay": 0.01, "init": "kaiming_uniform"},
                first={"lr": [2.5e-4, 5e-4, 1e-3, 2e-3]},
                then=dense_then,
                last={"decay": dense_last},
            ),
            "sparse": Side(
                networks={
                    "1024, 95 %": sparse(mlp, 1024, unstructured(0.95)),
                    "2048, 95 %": sparse(mlp, 2048, unstructured(0.95)),
                    "2048, 1:16 in groups of 8": sparse(mlp, 2048, grouped(1, 16)),
                    "2048, blocks 95 %": sparse(mlp, 2048, blocks(0.95)),
                },
                defaults={"decay": 0.01, "init": "kaiming_uniform"},
                first={"lr": [2.5e-4, 1e-3]},
                then=sparse_then,
                last={"decay": sparse_last},
            ),
        },
    )


def gpt_row(name, title, dense, sparse_networks, **more):
    return Row(
        name=name,
        title=title,
        config="configs/shakespeare_gpt_mini.yaml",
        data=SHAKESPEARE,
        metric="validation_loss",
        reported="validation_loss",
        choices=GPT_CHOICES,
        sides={"dense": dense, "sparse": sparse_networks},
        **dict({"always": (WARMUP,)}, **more),
    )


BERT_192 = sparse(transformer, 192, unstructured(0.9))
# Without sparse_mup.
BERT_RIGL = mask("rigl", "sparsity: 0.8, pattern: {type: block, rows: 1, cols: 4}", "block")


def bert_row(seconds, dense_lr, sparse_lr, networks, **more):
    return Row(
        name=f"bert_{seconds}s", title=f"BERT on SST-2, {seconds} s", config="configs/sst2_bert.yaml", data=SST2,
        metric="validation_accuracy", reported="test_accuracy", seconds=seconds, choices=BERT_CHOICES, always=(WARMUP,),
        predicted="a tie within the ranges",
        sides={
            "dense": Side(networks={"64": transformer(64), "128": transformer(128)},
                          defaults={"decay": 0.05, "dropout": 0.3},
                          first={"lr": dense_lr}, then={"decay": [0.2], "dropout": [0.1, 0.5]}),
            "sparse": Side(networks=networks, defaults={"decay": 0.05, "dropout": 0.3},
                           first={"lr": sparse_lr}, then={"decay": [0.2], "dropout": [0.1, 0.5]}),
        }, **more)


RESNET_FILTER = ", param_filter: \"layer*conv*.weight\""


def resnet_row(name, title, dense, sparse_networks, sparse_decays=(3e-4, 1e-4), last_decays=(), **more):
    last = {"decay": list(last_decays)}
    return Row(
        name=name, title=title, config="configs/cifar10_resnet20.yaml", data=CIFAR10,
        metric="validation_accuracy", reported="test_accuracy", choices=RESNET_CHOICES, always=("data.validation=5000",),
        sides={
            "dense": Side(networks=dense, defaults={"decay": 1e-3}, first={"lr": [0.05, 0.1, 0.2]},
                          then={"decay": [3e-4, 3e-3]}, last=last),
            "sparse": Side(networks=sparse_networks, defaults={"decay": 1e-3}, first={"lr": [0.025, 0.05, 0.1]},
                           then={"decay": list(sparse_decays)}, last=last),
        }, **more)


GPT_SPARSE = {
    "128, 80 %": sparse(gpt, 128, unstructured(0.8)),
    "128, 1:4 in groups of 8": sparse(gpt, 128, grouped(1, 4)),
    "192, 90 %": sparse(gpt, 192, unstructured(0.9)),
}

ROWS = [
    mlp_row(60, crop=False,
            dense_then={"decay": [0.1, 0.3], "init": ["default"]},
            sparse_then={"lr": [1.25e-4], "decay": [0.1], "init": ["default"]},
            dense_last=[1.0, 3.0], sparse_last=[0.3, 1.0]),
    gpt_row(
        "gpt_120s", "GPT on Tiny Shakespeare, 120 s",
        Side(networks={"64": gpt(64), "96": gpt(96), "128": gpt(128)},
             defaults={"decay": 0.1, "deviation": 0.045},
             first={"lr": [3e-3, 6e-3, 1e-2]},
             then={"decay": [0.03, 0.3], "deviation": [0.02]}),
        Side(networks=GPT_SPARSE,
             defaults={"decay": 0.1, "deviation": 0.02},
             first={"lr": [1.5e-3, 3e-3, 6e-3]},
             then={"decay": [0.02, 0.05], "deviation": [0.045]}),
        seconds=120,
        predicted="sparse by 0.03; width 128 at 75 to 80 %"),
    gpt_row(
        "gpt_equal_nonzeros", "GPT on Tiny Shakespeare, equal nonzeros, 3,500 steps",
        Side(networks={"64": gpt(64)},
             defaults={"decay": 0.1, "deviation": 0.045},
             first={"lr": [3e-3, 6e-3, 1e-2, 1.5e-2]},
             then={"decay": [0.03, 0.3], "deviation": [0.02, 0.08]}),
        Side(networks={"192, 90.3 %": sparse(gpt, 192, unstructured(0.903)),
                       "128, 77 %": sparse(gpt, 128, unstructured(0.77))},
             defaults={"decay": 0.1, "deviation": 0.02},
             first={"lr": [1.5e-3, 3e-3, 6e-3]},
             then={"decay": [0.03], "deviation": [0.045]}),
        steps=3500, goal=0.05,
        predicted="sparse by 0.06; width 192"),
    gpt_row(
        "gpt_repeated_120s", "GPT on the first 100 kB of Tiny Shakespeare, 120 s",
        Side(networks={"64": gpt(64), "128": gpt(128)},
             defaults={"decay": 0.1, "deviation": 0.045, "dropout": 0.0},
             first={"lr": [3e-3, 6e-3]}, then={"dropout": [0.1, 0.2, 0.3], "decay": [0.3, 1.0]},
             last={"dropout": [0.1, 0.2], "decay": [0.3, 1.0]}),
        Side(networks={"128, 80 %": GPT_SPARSE["128, 80 %"], "192, 90 %": GPT_SPARSE["192, 90 %"]},
             defaults={"decay": 0.1, "deviation": 0.02, "dropout": 0.0},
             first={"lr": [1.5e-3, 3e-3]}, then={"dropout": [0.1, 0.2, 0.3], "decay": [0.3, 1.0]},
             last={"dropout": [0.1, 0.2], "decay": [0.3, 1.0]}),
        seconds=120, always=(WARMUP, "data.limit=100000"),
        predicted="sparse by 0.02; width 192 at 90 %"),
    bert_row(60, dense_lr=[5e-4, 1e-3, 2e-3], sparse_lr=[2.5e-4, 5e-4, 1e-3],
             networks={"128, 80 %": sparse(transformer, 128, unstructured(0.8)), "192, 90 %": BERT_192}),
    bert_row(20, dense_lr=[2.5e-4, 5e-4, 1e-3], sparse_lr=[2.5e-4, 5e-4, 1e-3], trial=1.0,
             networks={"128, 80 % by RigL in 1 × 4": transformer(128, BERT_RIGL), "192, 90 %": BERT_192},
             conditions="A trial takes the whole time, because a tenth would be about one epoch."),
    Row(
        name="vit_600s", title="Vision transformer on CIFAR-10, 600 s", config="configs/cifar10_vit.yaml", data=CIFAR10,
        metric="validation_accuracy", reported="test_accuracy", seconds=600, choices=VIT_CHOICES,
        always=(WARMUP, "data.validation=5000"), goal=-1.0,
        predicted="dense by 1 point; width 192 in groups of 8",
        sides={
            "dense": Side(networks={"96": transformer(96), "128": transformer(128)}, defaults={"decay": 0.05},
                          first={"lr": [1e-3, 2e-3, 4e-3]}, then={"decay": [0.2]}),
            "sparse": Side(networks={"128, 80 %": sparse(transformer, 128, unstructured(0.8)),
                                     "192, 1:4 in groups of 8": sparse(transformer, 192, grouped(1, 4))},
                           defaults={"decay": 0.05}, first={"lr": [2.5e-4, 5e-4, 1e-3]}, then={"decay": [0.2]}),
        }),
    resnet_row("resnet_equal_nonzeros", "ResNet-20 on CIFAR-10, equal nonzeros, 4,700 steps",
               {"width 9": resnet(9)}, {"width 32, 93 %": sparse(resnet, 32, unstructured(0.93, more=RESNET_FILTER))},
               steps=4700, goal=2.0, predicted="sparse by 2 points"),
    resnet_row("resnet_900s", "ResNet-20 on CIFAR-10, 900 s",
               {f"width {width}": resnet(width) for width in (16, 8, 24)},
               {f"width {width}, {percent} %":
                sparse(resnet, width, unstructured(percent / 100, more=RESNET_FILTER))
                for width, percent in ((32, 95), (16, 70), (16, 80))},
               # The less decay, the worse the first trials were, so the smallest made way for a larger one.
               sparse_decays=(3e-4, 3e-3), last_decays=[3e-3], seconds=900, goal=-1.0, predicted="dense by 1 point"),
    # In 60 s, the largest decays were best, and the default initial values lost on both sides.
    mlp_row(300, crop=True, dense_then={"decay": [0.1, 0.3, 1.0]}, sparse_then={"lr": [5e-4], "decay": [0.1, 0.3]},
            dense_last=[0.1, 0.6, 3.0], sparse_last=[0.03, 0.1, 0.3]),
    gpt_row(
        "gpt_600s", "GPT on Tiny Shakespeare, 600 s",
        Side(networks={"64": gpt(64), "96": gpt(96), "128": gpt(128)},
             defaults={"decay": 0.1, "deviation": 0.045},
             first={"lr": [3e-3, 6e-3, 1e-2]},
             then={"decay": [0.03, 0.3], "deviation": [0.02]}),
        Side(networks={"128, 80 %": GPT_SPARSE["128, 80 %"], "192, 80 %": sparse(gpt, 192, unstructured(0.8)),
                       "192, 1:4 in groups of 8": sparse(gpt, 192, grouped(1, 4))},
             defaults={"decay": 0.1, "deviation": 0.02},
             first={"lr": [1.5e-3, 3e-3, 6e-3]},
             then={"decay": [0.02, 0.05], "deviation": [0.045]}),
        seconds=600,
        predicted="sparse by 0.03; width 192 at 75 to 80 %"),
]
