"""A ResNet-20 of PyTorch comes in, is pruned and trained sparse, and goes back with equal outputs."""

import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import lacuna as lc

SOURCE = os.environ["LACUNA_SOURCE_DIR"]


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.added = stride, channels - channels_in

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.stride > 1 or self.added > 0:  # every second pixel, zeros in the new channels
            half = self.added // 2
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, self.added - half))
        return functional.relu(x + y)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16, 1) for _ in range(3)])
        self.layer2 = nn.Sequential(Block(16, 32, 2), *[Block(32, 32, 1) for _ in range(2)])
        self.layer3 = nn.Sequential(Block(32, 64, 2), *[Block(64, 64, 1) for _ in range(2)])
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean(dim=(2, 3)))


def network():
    """One whose running moments are those of some batches, as a trained one's."""
    torch.manual_seed(1)
    made = ResNet20()
    with torch.no_grad():
        for _ in range(3):
            made(torch.rand(32, 3, 32, 32))
    return made.eval()


def assert_equal_outputs(mine, theirs):
    """To 1e-5 of the largest output."""
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * max(1.0, np.abs(theirs).max()))


def test_a_resnet_goes_in_is_pruned_trained_and_goes_back(tmp_path):
    theirs = network()
    x = torch.rand(20, 3, 32, 32)
    with torch.no_grad():
        before = theirs(x).numpy()
    data = {"type": "colour_glyphs", "train_size": 100, "test_size": 20, "normalize": "unit"}
    dense = lc.import_(
        theirs.state_dict(),
        os.path.join(SOURCE, "configs", "cifar10_resnet20.yaml"),
        run_dir=tmp_path / "dense",
        set={
            "data": data,
            "train.epochs": 1,
            "train.batch_size": 50,
            "train.threads": 1,
            "optimizer.lr": 0.01,
        },
    )
    assert_equal_outputs(lc.load(dense).predict(x.numpy()), before)

    pruned = lc.prune(dense, run_dir=tmp_path / "pruned", sparsity=0.8, method="magnitude")
    mask = lc.load(pruned)["layer2.1.conv1.weight"].mask
    assert abs(mask.mean() - 0.2) < 0.01
    pruned.resume()
    model = lc.load(pruned, last=True)
    assert model.step == 2
    assert np.array_equal(model["layer2.1.conv1.weight"].mask, mask)

    state = {name: torch.as_tensor(array) for name, array in model.model.state_dict(masks=False).items()}
    left_out = theirs.load_state_dict(state, strict=False)
    assert not left_out.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in left_out.missing_keys)
    with torch.no_grad():
        after = theirs.eval()(x).numpy()
    assert not np.allclose(after, before)
    assert_equal_outputs(model.predict(x.numpy()), after)
    assert ((theirs.layer2[1].conv1.weight != 0).numpy() == mask).mean() > 0.999

    lc.export(pruned, "npz", tmp_path / "back.npz", last=True)
    arrays = np.load(tmp_path / "back.npz")
    for name, array in state.items():
        np.testing.assert_array_equal(arrays[name], array.numpy(), err_msg=name)
