"""Predictions, datasets of arrays, loaders and metrics."""

import numpy as np
import pytest
from pages import within_a_page

import lacuna as lc

RNG = np.random.default_rng(0)


def images(count):
    return RNG.random((count, 28, 28), dtype=np.float32), np.arange(count) % 10


def mlp():
    return lc.Model([lc.Flatten(), lc.Linear(784, 30), lc.ReLU(), lc.Linear(30, 10)])


def test_predict_shares_its_input_and_evaluates():
    model = lc.Model([lc.Flatten(), lc.Dropout(0.5)], input_shape=(28, 28))
    x = within_a_page(images(5)[0])
    pointer = x.__array_interface__["data"][0]
    out = model.predict(x)
    assert out.__array_interface__["data"][0] == pointer  # through the whole model
    np.testing.assert_array_equal(out, x.reshape(5, 784))
    assert model.training
    model = mlp()
    # Products of other batches add up in another order: some last digits of sums of 784 terms.
    np.testing.assert_allclose(model.predict(x, batch_size=2), model.predict(x), atol=1e-5)
    np.testing.assert_allclose(model.predict(x[:, ::-1][:, ::-1]), model.predict(x), rtol=1e-6)
    np.testing.assert_allclose(model.predict(x.astype(np.float64)), model.predict(x), rtol=1e-6)


# Call 18: data and metrics.


def test_datasets_of_arrays_and_metrics():
    x, y = images(50)
    data = lc.ArrayDataset(x, y)
    assert (len(data), data.example_shape, data.num_classes) == (50, (28, 28), 10)
    batches = list(lc.Loader(data, batch_size=20, shuffle=False))
    assert [len(labels) for _, labels in batches] == [20, 20, 10]
    np.testing.assert_array_equal(np.concatenate([b[0] for b in batches]), x)
    loader = lc.Loader(data, batch_size=20, seed=3)
    first = [labels for _, labels in loader]
    second = [labels for _, labels in loader]
    assert (np.concatenate(first) != np.concatenate(second)).any() and loader.epoch == 2
    model = mlp()

    def hits(outputs, labels):
        return float((outputs.argmax(1) == labels).mean())

    found = model.evaluate(data, metrics={"hits": hits})
    assert found["hits"] == pytest.approx(found["accuracy"]) and found["examples"] == 50
    targets = lc.ArrayDataset(x, y.astype(np.float32))
    wide = lc.Model([lc.Flatten(), lc.Linear(784, 1)])
    assert "r2" in wide.evaluate(targets)
    bytes_ = lc.ArrayDataset((x * 255).astype(np.uint8), y)
    np.testing.assert_allclose(bytes_[0][0], np.floor(x[0] * 255) / 255, rtol=1e-6)


def test_examples_are_chosen_as_in_numpy():
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    data = lc.ArrayDataset(x, np.arange(5) % 3)
    for chosen in (np.arange(5) > 2, [3, 0], [-1, -5], np.array([1, 1]), []):
        inputs, labels = data[chosen]
        index = np.asarray(chosen, dtype=None if len(chosen) else int)
        np.testing.assert_array_equal(inputs, x[index].reshape(-1, 2))
        np.testing.assert_array_equal(labels, (np.arange(5) % 3)[index])
    for bad in ([5], [-6], np.ones(4, bool), np.ones((5, 1), bool)):
        with pytest.raises((IndexError, lc.Error)):
            data[bad]
