#!/usr/bin/env python3
"""Evaluates an ONNX model with NumPy, by the standard's text alone (operators of opset 13).

usage: evaluate.py MODEL OUTPUT NAME:TYPE:DIMS:FILE...
TYPE is float32 or int64, DIMS as in 4x3x32x32, FILE holds the numbers row-major, little-endian.
The first output is written to OUTPUT as float32; its shape is printed. The model passes the onnx
checker, with shapes inferred strictly, before it is evaluated. A model with sparse initializers
passes the plain checker as it is, and the strict one with these made dense."""
import sys

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

operators = {}


def operator(function):
    operators[function.__name__] = function
    return function


def simple(name, function):
    operators[name] = lambda inputs, attributes: function(*inputs)


simple("Abs", np.abs)
simple("Add", np.add)
simple("And", np.logical_and)
simple("Cos", np.cos)
simple("CumSum", lambda x, axis: np.cumsum(x, int(axis)))
simple("Div", np.divide)
simple("Equal", np.equal)
simple("Expand", lambda x, shape: x * np.ones(shape, x.dtype))
simple("Identity", lambda x: x)
simple("LessOrEqual", np.less_equal)
simple("MatMul", np.matmul)
simple("Max", np.maximum)
simple("Min", np.minimum)
simple("Mul", np.multiply)
simple("Neg", np.negative)
simple("Range", lambda start, limit, delta: np.arange(start, limit, delta))
simple("Relu", lambda x: np.maximum(x, 0))
simple("Round", np.round)
simple("Shape", lambda x: np.array(x.shape, np.int64))
simple("Sigmoid", lambda x: 1 / (1 + np.exp(-x)))
simple("Sin", np.sin)
simple("Sqrt", np.sqrt)
simple("Squeeze", lambda x, axes: np.squeeze(x, tuple(axes)))
simple("Sub", np.subtract)
simple("Tanh", np.tanh)
simple("Where", np.where)


def erf(x):
    """Simpson's rule on 400 intervals, in double precision."""
    x = np.asarray(x, np.float64)
    z = np.clip(x, -6, 6)[..., None] * np.linspace(0, 1, 401)
    weights = np.ones(401)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return 2 / np.sqrt(np.pi) * (np.exp(-z * z) @ weights) * np.clip(x, -6, 6) / 400 / 3


simple("Erf", lambda x: erf(x).astype(x.dtype))


@operator
def Cast(inputs, attributes):
    return inputs[0].astype({1: np.float32, 7: np.int64, 9: np.bool_}[attributes["to"]])


@operator
def Clip(inputs, attributes):
    return np.clip(inputs[0], inputs[1], inputs[2])


@operator
def Concat(inputs, attributes):
    return np.concatenate(inputs, attributes["axis"])


@operator
def ConstantOfShape(inputs, attributes):
    return np.zeros(inputs[0], np.float32)


@operator
def DequantizeLinear(inputs, attributes):
    x, scale = inputs[:2]
    zero = inputs[2].astype(np.int32) if len(inputs) > 2 else np.zeros(scale.shape, np.int32)
    if scale.ndim == 1:
        dims = [1] * x.ndim
        dims[attributes.get("axis", 1)] = -1
        scale, zero = scale.reshape(dims), zero.reshape(dims)
    return (x.astype(np.int32) - zero).astype(np.float32) * scale


@operator
def Flatten(inputs, attributes):
    axis = attributes.get("axis", 1)
    return inputs[0].reshape(int(np.prod(inputs[0].shape[:axis])), -1)


@operator
def Gather(inputs, attributes):
    return np.take(inputs[0], inputs[1], attributes.get("axis", 0))


@operator
def GatherElements(inputs, attributes):
    return np.take_along_axis(inputs[0], inputs[1], attributes.get("axis", 0))


@operator
def ScatterElements(inputs, attributes):
    result = inputs[0].copy()
    np.put_along_axis(result, inputs[1], inputs[2], attributes.get("axis", 0))
    return result


@operator
def Gemm(inputs, attributes):
    a = inputs[0].T if attributes.get("transA", 0) else inputs[0]
    b = inputs[1].T if attributes.get("transB", 0) else inputs[1]
    y = attributes.get("alpha", 1.0) * (a @ b)
    return y + attributes.get("beta", 1.0) * inputs[2] if len(inputs) > 2 else y


@operator
def LeakyRelu(inputs, attributes):
    x = inputs[0]
    return np.where(x < 0, attributes.get("alpha", 0.01) * x, x)


@operator
def Pad(inputs, attributes):
    assert attributes.get("mode", b"constant") == b"constant"
    half = len(inputs[1]) // 2
    return np.pad(inputs[0], list(zip(inputs[1][:half], inputs[1][half:])))


@operator
def QuantizeLinear(inputs, attributes):
    x, scale, zero = inputs
    limits = np.iinfo(zero.dtype)
    steps = np.round(x / scale) + zero.astype(np.float32)
    return np.clip(steps, limits.min, limits.max).astype(zero.dtype)


@operator
def ReduceMax(inputs, attributes):
    return inputs[0].max(tuple(attributes["axes"]), keepdims=bool(attributes.get("keepdims", 1)))


@operator
def ReduceMin(inputs, attributes):
    return inputs[0].min(tuple(attributes["axes"]), keepdims=bool(attributes.get("keepdims", 1)))


@operator
def ReduceMean(inputs, attributes):
    return inputs[0].mean(tuple(attributes["axes"]), keepdims=bool(attributes.get("keepdims", 1)))


@operator
def ReduceSum(inputs, attributes):
    return inputs[0].sum(tuple(inputs[1]), keepdims=bool(attributes.get("keepdims", 1)))


@operator
def Reshape(inputs, attributes):
    x, dims = inputs
    return x.reshape([x.shape[i] if d == 0 else int(d) for i, d in enumerate(dims)])


@operator
def Slice(inputs, attributes):
    x, starts, ends = inputs[:3]
    axes = inputs[3] if len(inputs) > 3 else range(len(starts))
    steps = inputs[4] if len(inputs) > 4 else [1] * len(starts)
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[axis] = slice(int(start), int(end), int(step))
    return x[tuple(index)]


@operator
def Softmax(inputs, attributes):
    x, axis = inputs[0], attributes.get("axis", -1)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@operator
def Split(inputs, attributes):
    ends = np.cumsum(inputs[1])[:-1]
    return tuple(np.split(inputs[0], ends, attributes.get("axis", 0)))


@operator
def TopK(inputs, attributes):
    x, k, axis = inputs[0], int(inputs[1][0]), attributes.get("axis", -1)
    order = np.argsort(-x, axis, kind="stable")
    chosen = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, chosen, axis), chosen


@operator
def Transpose(inputs, attributes):
    return inputs[0].transpose(attributes.get("perm"))


@operator
def Unsqueeze(inputs, attributes):
    return np.expand_dims(inputs[0], tuple(inputs[1]))


def channels(values, x):
    return values.reshape((1, -1) + (1,) * (x.ndim - 2))


@operator
def BatchNormalization(inputs, attributes):
    x, scale, bias, mean, variance = inputs
    deviation = np.sqrt(variance + attributes.get("epsilon", 1e-5))
    return (x - channels(mean, x)) / channels(deviation, x) * channels(scale, x) + channels(bias, x)


@operator
def InstanceNormalization(inputs, attributes):
    x, scale, bias = inputs
    axes = tuple(range(2, x.ndim))
    deviation = np.sqrt(x.var(axes, keepdims=True) + attributes.get("epsilon", 1e-5))
    return (x - x.mean(axes, keepdims=True)) / deviation * channels(scale, x) + channels(bias, x)


@operator
def GlobalAveragePool(inputs, attributes):
    x = inputs[0]
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


def windows(x, attributes, fill):
    """All windows of x: [batch, channels, *outputs, *kernel]."""
    kernel, rank = attributes["kernel_shape"], x.ndim - 2
    pads = attributes.get("pads", [0] * (2 * rank))
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(pads[:rank], pads[rank:])), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, x.ndim)))
    at = tuple(slice(None, None, s) for s in strides) + tuple(slice(None, None, d) for d in dilations)
    return view[(slice(None), slice(None)) + at]


@operator
def MaxPool(inputs, attributes):
    x = inputs[0]
    view = windows(x, attributes, -np.inf)
    return view.max(tuple(range(x.ndim, view.ndim)))


@operator
def AveragePool(inputs, attributes):
    x = inputs[0]
    view = windows(x, attributes, 0)
    axes = tuple(range(x.ndim, view.ndim))
    if attributes.get("count_include_pad", 0):
        return view.mean(axes)
    return view.sum(axes) / windows(np.ones_like(x), attributes, 0).sum(axes)


@operator
def Conv(inputs, attributes):
    x, w = inputs[:2]
    groups, rank = attributes.get("group", 1), x.ndim - 2
    view = windows(x, {**attributes, "kernel_shape": list(w.shape[2:])}, 0)
    parts = []
    for values, weights in zip(np.split(view, groups, 1), np.split(w, groups, 0)):
        over = [1] + list(range(2 + rank, 2 + 2 * rank))
        y = np.tensordot(values, weights, (over, list(range(1, 2 + rank))))
        parts.append(np.moveaxis(y, -1, 1))
    y = np.concatenate(parts, 1)
    return y + channels(inputs[2], y) if len(inputs) > 2 else y


def make_dense(graph):
    """Sparse initializers (flat, ascending coordinates) become dense ones."""
    for sparse in graph.sparse_initializer:
        coordinates = numpy_helper.to_array(sparse.indices)
        assert coordinates.ndim == 1 and (np.diff(coordinates) > 0).all(), sparse.values.name
        array = np.zeros(list(sparse.dims), np.float32)
        array.reshape(-1)[coordinates] = numpy_helper.to_array(sparse.values)
        graph.initializer.append(numpy_helper.from_array(array, sparse.values.name))
    del graph.sparse_initializer[:]


def value_of(attribute):
    return onnx.helper.get_attribute_value(attribute)


def evaluate(model, values):
    for constant in model.graph.initializer:
        values[constant.name] = numpy_helper.to_array(constant)
    for node in model.graph.node:
        attributes = {a.name: value_of(a) for a in node.attribute}
        results = operators[node.op_type]([values[name] for name in node.input], attributes)
        if len(node.output) == 1:
            results = (results,)
        assert len(results) == len(node.output), node.op_type
        for name, result in zip(node.output, results):
            result = np.asarray(result)
            if result.dtype == np.float64:
                result = result.astype(np.float32)
            values[name] = result
    return values[model.graph.output[0].name]


def main():
    model = onnx.load(sys.argv[1])
    onnx.checker.check_model(model)
    make_dense(model.graph)
    onnx.checker.check_model(model, full_check=True)
    shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    values = {}
    for argument in sys.argv[3:]:
        name, kind, dims, path = argument.split(":", 3)
        array = np.fromfile(path, kind).reshape([int(d) for d in dims.split("x")])
        values[name] = array
    given, wanted = set(values), {i.name for i in model.graph.input}
    if given != wanted:
        sys.exit(f"the model's inputs are {sorted(wanted)}, given are {sorted(given)}")
    output = evaluate(model, values).astype(np.float32)
    declared = [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim]
    assert len(declared) == output.ndim and all(d in (0, n) for d, n in zip(declared, output.shape))
    output.tofile(sys.argv[2])
    print("x".join(str(n) for n in output.shape))


main()
