"""predict: batches, tokens, keywords, and the modes of modules."""

import numpy as np
import pytest

import lacuna as lc

RNG = np.random.default_rng(3)
X = RNG.random((16, 20), dtype=np.float32)
IDS = np.arange(24).reshape(2, 12)


def embedding(**keys):
    return lc.Model([lc.Embedding(50, 16)], input_shape=(12,), **keys)


def bert():
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    keys = {"type": "bert", **sizes, "vocab_size": 50, "num_labels": 3}
    return lc.Model(keys, input_shape=(12,)).eval()


class Own(lc.nn.Module):
    def __init__(self, output):
        super().__init__()
        self.fc = lc.nn.Linear(20, 3)
        self.output = output
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.output(self.fc(x), self.calls)


@pytest.mark.parametrize(
    "output, found",
    [
        (lambda y, _: lc.cat([y] * 4, 0), r"\[20, 3\], expected 5 in dimension 0"),
        (lambda y, _: y.mean(), r"\[\], expected 5 in dimension 0"),
        (lambda y, n: lc.cat([y] * n, 1), r"\[5, 6\], expected \[5, 3\], like the first batch's"),
    ],
)
def test_batches_that_give_no_rows_of_one_output_are_refused(output, found):
    with pytest.raises(lc.ShapeError, match="predict: 5 examples give .*" + found):
        Own(output).predict(X, batch_size=5)
    assert Own(output).predict(X, batch_size=16).size > 0


def test_tokens_are_predicted_from():
    e = embedding()
    expected = e(IDS).numpy()
    assert expected.shape == (2, 12, 16)
    np.testing.assert_array_equal(e.predict(IDS), expected)
    np.testing.assert_array_equal(e.predict(IDS, batch_size=1), expected)
    ids = lc.Variable(IDS)
    with lc.no_grad():
        np.testing.assert_array_equal(e(ids).numpy(), expected)


def test_tokens_are_taken_in_batches():
    class Counting(lc.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = lc.nn.Embedding(50, 4)
            self.seen = []

        def forward(self, x):
            self.seen.append(x.shape)
            return self.tokens(x)

    module = Counting()
    assert module.predict(np.zeros((5, 12), int), batch_size=2).shape == (5, 12, 4)
    assert module.seen == [(2, 12), (2, 12), (1, 12)]
    model = lc.Model([module, lc.Flatten(), lc.Linear(48, 3)], input_shape=(12,))
    assert model.predict(IDS).shape == (2, 3)


def test_masks_are_cut_with_their_tokens():
    model = bert()
    ids = RNG.integers(0, 50, (6, 12))
    mask = (np.arange(12) < RNG.integers(3, 13, (6, 1))).astype(int)
    expected = model(ids, attention_mask=mask).numpy()
    np.testing.assert_allclose(model.predict(ids, attention_mask=mask), expected, rtol=1e-5)
    by_two = model.predict(ids, batch_size=2, attention_mask=mask)
    np.testing.assert_allclose(by_two, expected, rtol=1e-5, atol=1e-6)
    assert not np.allclose(model.predict(ids), expected)


def test_an_unknown_keyword_is_refused():
    model = bert()
    unknown = "no input 'attenton_mask'; it reads these by keyword: .*attention_mask"
    for call in (model, model.predict):
        with pytest.raises(TypeError, match=unknown):
            call(IDS, attenton_mask=np.ones((2, 12), int))
    linear = lc.Model([lc.Linear(20, 3)])
    with pytest.raises(TypeError, match="no input 'mask'; it reads only the first argument"):
        linear(X, mask=np.ones(16, int))
    with pytest.raises(TypeError, match="no input 'mask'"):
        Own(lambda y, _: y).predict(X, mask=np.ones(16, int))


def test_each_modules_mode_is_restored():
    layers = [lc.Linear(20, 8), lc.BatchNorm1d(8, name="bn"), lc.Dropout(0.5, name="drop")]
    model = lc.Model([*layers, lc.Linear(8, 3)])
    data = lc.ArrayDataset(X, np.arange(16) % 3)
    model.bn.eval()
    for call in (lambda: model.predict(X), lambda: model.evaluate(data)):
        call()
        assert model.training and model.drop.training and not model.bn.training
    model.eval()
    expected = model.predict(X)
    model.drop.train()
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.drop.training and not model.training
