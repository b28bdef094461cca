"""Operators of Parameters: Variables with a gradient, but arrays within functions of algorithms."""

import numpy as np
import pytest

import lacuna as lc
from lacuna import sparse

VALUES = np.array([1.0, -2.0, 3.0], np.float32)
OPERATIONS = {
    "p + 2": lambda p: p + 2,
    "2 - p": lambda p: 2 - p,
    "p - array": lambda p: p - VALUES,
    "array - p": lambda p: VALUES - p,
    "array * p": lambda p: VALUES * p,
    "p * array": lambda p: p * VALUES,
    "p * p": lambda p: p * p,
    "np.float32 * p": lambda p: np.float32(2) * p,
    "np.add": lambda p: np.add(VALUES, p),
    "-p": lambda p: -p,
    "p / 2": lambda p: p / 2,
}


class Applied(lc.nn.Module):
    """Applies an operation to its parameter."""

    def __init__(self, operation, values=VALUES):
        super().__init__()
        self.parameter = lc.nn.Parameter(values)
        self.operation = operation

    def forward(self, x):
        result = self.operation(self.parameter)
        assert isinstance(result, lc.Variable) and result.requires_grad
        return result


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_operators_give_what_numpy_gives_with_a_gradient(operation):
    applied = Applied(operation)
    result = applied(np.zeros(1, np.float32))
    assert np.allclose(result.numpy(), operation(VALUES))
    result.sum().backward()
    step = 1e-2
    for i in range(3):
        moved = [VALUES.copy(), VALUES.copy()]
        moved[0][i] -= step
        moved[1][i] += step
        low, high = (Applied(operation, m)(np.zeros(1, np.float32)).sum().item() for m in moved)
        assert applied["parameter"].grad[i] == pytest.approx((high - low) / (2 * step), abs=1e-2)


def test_a_script_gets_arrays_with_arrays():
    parameter = lc.nn.Parameter(VALUES)
    for product in (VALUES * parameter, parameter * VALUES, np.float32(2) * parameter):
        assert isinstance(product, (np.ndarray, np.generic))
    for result in (1 - parameter, 2 * parameter, -parameter, parameter / 2, parameter * parameter):
        assert isinstance(result, lc.Variable) and result.requires_grad


def test_without_gradients_there_is_none():
    with lc.no_grad():
        assert not (1 - lc.nn.Parameter(VALUES)).requires_grad


class Gate(lc.nn.Module):
    def __init__(self, compute):
        super().__init__()
        self.gain = lc.nn.Parameter(VALUES)
        self.compute = compute

    def forward(self, x):
        return self.compute(x, self.gain)


def test_a_module_learns_whatever_the_order_of_an_operator():
    x = np.ones((4, 3), np.float32)
    gradients = []
    for compute in (lambda x, g: x * (VALUES * g), lambda x, g: (g * VALUES) * x):
        gate = Gate(compute)
        gate(x).sum().backward()
        gradients.append(gate["gain"].grad.copy())
    assert np.array_equal(gradients[0], 4 * VALUES)
    assert np.array_equal(gradients[1], gradients[0])


def test_numpys_functions_are_refused_where_a_gradient_would_be_lost():
    for lost in (np.tanh, lambda g: VALUES / g, lambda g: g / VALUES):
        gate = Gate(lambda x, g: x * lost(g))
        with pytest.raises(TypeError, match="numpy.[a-z_]* records no gradient of a Parameter"):
            gate(np.ones((4, 3), np.float32))
        gate["gain"].trainable = False  # then there is none to lose
        gate(np.ones((4, 3), np.float32))
    assert np.isfinite(lc.nn.Parameter(VALUES)).all()
    gate = Gate(lambda x, g: x * 2 if np.isfinite(g).all() else x)
    assert gate(np.ones((4, 3), np.float32)).numpy().max() == 2
    assert np.array_equal(np.abs(lc.nn.Parameter(VALUES)), np.abs(VALUES))  # not in a forward pass
    with pytest.raises(TypeError, match="give an array as out, not a Parameter"):
        np.add(VALUES, VALUES, out=lc.nn.Parameter(VALUES))


def test_functions_of_algorithms_get_arrays():
    seen = []

    class Own(sparse.DynamicSparsityAlgorithm):
        def update_mask(self, weight, mask, sparsity):
            p = weight.param
            for score in (mask * p, p * mask, 2.0 * p, -p, p / 2):
                assert type(score) is np.ndarray
            seen.append(np.abs(p * mask).max())
            return mask

    model = lc.Model([lc.Linear(4, 8, name="fc1"), lc.ReLU(), lc.Linear(8, 2, name="fc2")])
    algorithm = Own(0.5, update={"freq": 1})
    model.apply(algorithm)
    optimizer = lc.SGD(model.parameters(), lr=0.1)
    optimizer.apply(algorithm)
    hooked = []
    optimizer.register_step_post_hook(
        lambda optimizer: hooked.append(type(2 * optimizer.parameters[0]))
    )
    lc.cross_entropy(model(np.ones((3, 4), np.float32)), np.array([0, 1, 0])).backward()
    optimizer.step()
    assert len(seen) == 2 and hooked == [np.ndarray]


def test_a_compressed_weight_says_what_to_do():
    model = lc.Model([lc.Linear(32, 32, name="fc")])
    model.apply(sparse.Static(0.9, layout="csr"))
    with pytest.raises(lc.Error):
        2 * model["fc.weight"]
