"""ONNX initializers and the inputs of MatMulNBits against onnxruntime, both ways and on random bytes.

MatMulNBits multiplies: with an identity matrix it answers the weight, but as scale x code - scale x zero, two roundings
more than (code - zero) x scale, so the difference is held to those. DequantizeLinear answers the same blocks exactly.
"""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.bits import words_of
from ninfer_core.schemes.integer import LINEAR_ONNX, MATMULNBITS
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
ort = pytest.importorskip("onnxruntime", reason=REASON)
pytest.importorskip(
    "gguf", reason=REASON
)  # onnxruntime is here for the decoders; this comparison is not of every run
onnx = pytest.importorskip("onnx", reason=REASON)
quantizers = pytest.importorskip("onnxruntime.capi._pybind_state", reason=REASON)
TYPES = pytest.mark.parametrize("name", ["int8", "uint8", "int4", "uint4", "int2", "uint2"])
GROUPINGS = pytest.mark.parametrize(
    ("shape", "axis", "block"),
    [((6, 35), None, 0), ((5, 4, 3), 1, 0), ((7, 96), 1, 32), ((64, 9), 0, 16), ((3, 40), 1, 16)],
)
BITS = pytest.mark.parametrize("bits", [2, 4, 8])
MATRICES = pytest.mark.parametrize(("outputs", "inputs", "block"), [(24, 128, 32), (8, 80, 32), (16, 64, 16)])


def normal(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def evaluated(nodes, initializers, inputs, output):
    """What onnxruntime computes as Y; `inputs` are named arrays."""
    named = onnx.helper.make_tensor_value_info
    types = onnx.helper.np_dtype_to_tensor_dtype
    typed = [named(name, types(array.dtype), array.shape) for name, array in inputs.items()]
    result = named("Y", onnx.TensorProto.FLOAT, output)
    graph = onnx.helper.make_graph(nodes, "g", typed, [result], initializers)
    opsets = [onnx.helper.make_opsetid("", 25), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=11)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def initializers(name, shape, parts, single):
    """x, s and z as tensors of a model."""
    kind, bits = getattr(onnx.TensorProto, name.upper()), int(name.lstrip("uint"))
    scale = parts["scale"].reshape(()) if single else parts["scale"]
    zeros = parts.get("zero_point", np.zeros(scale.shape, np.int64)).reshape(-1)
    packed = words_of((zeros & (1 << bits) - 1).astype(np.uint8), bits)
    return [
        onnx.TensorProto(name="x", data_type=kind, dims=shape, raw_data=parts["payload"].tobytes()),
        onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, scale.shape, scale.ravel().tolist()),
        onnx.TensorProto(name="z", data_type=kind, dims=scale.shape, raw_data=packed.tobytes()),
    ]


def linear(op, inputs, output, axis, block):
    return onnx.helper.make_node(
        op, inputs, output, block_size=block, **({} if axis is None else {"axis": axis})
    )


@TYPES
@GROUPINGS
def test_initializers_encoded_here_are_read_and_made_by_it(name, shape, axis, block):
    """Its quantizer, given our scales and zero points, comes to the same numbers."""
    params = {"type": name, "block_size": block} | ({} if axis is None else {"axis": axis})
    values = normal(*shape)
    parts = run.encode(LINEAR_ONNX, values, params)
    tensors = initializers(name, shape, parts, axis is None)
    ours = run.decode(LINEAR_ONNX, parts, shape, params)
    read = linear("DequantizeLinear", ["x", "s", "z"], ["Y"], axis, block)
    assert_same_numbers(ours, evaluated([read], tensors, {}, shape))
    made = linear("QuantizeLinear", ["W", "s", "z"], ["q"], axis, block)
    again = linear("DequantizeLinear", ["q", "s", "z"], ["Y"], axis, block)
    assert_same_numbers(ours, evaluated([made, again], tensors[1:], {"W": values}, shape))


@TYPES
@GROUPINGS
def test_random_initializers_are_read_as_it_does(name, shape, axis, block):
    drawn = np.random.default_rng([*shape, block])
    params = {"type": name, "block_size": block} | ({} if axis is None else {"axis": axis})
    bits, count = int(name.lstrip("uint")), int(np.prod(shape))
    sizes = run.encode(LINEAR_ONNX, np.zeros(shape, np.float32), params)["scale"].shape
    least = 0 if name[0] == "u" else -(1 << bits - 1)
    parts = {
        "payload": drawn.integers(0, 256, -(-count * bits // 8), np.uint8),
        "scale": drawn.standard_normal(sizes).astype(np.float32),
        "zero_point": drawn.integers(least, least + (1 << bits), sizes),
    }
    tensors = initializers(name, shape, parts, axis is None)
    node = linear("DequantizeLinear", ["x", "s", "z"], ["Y"], axis, block)
    assert_same_numbers(run.decode(LINEAR_ONNX, parts, shape, params), evaluated([node], tensors, {}, shape))


def product(parts, outputs, inputs, bits, block):
    """The weight [outputs, inputs] as MatMulNBits has it."""
    tensors = [onnx.numpy_helper.from_array(parts[name], name) for name in parts]
    names = ["A", "B", "scales", *(["zero_points"] if "zero_points" in parts else [])]
    sizes = {"K": inputs, "N": outputs, "bits": bits, "block_size": block}
    node = onnx.helper.make_node("MatMulNBits", names, ["Y"], domain="com.microsoft", **sizes)
    return evaluated([node], tensors, {"A": np.eye(inputs, dtype=np.float32)}, (inputs, outputs)).T


def assert_product(parts, params, shape):
    bits, block = params["bits"], params["block_size"]
    ours, theirs = run.decode(MATMULNBITS, parts, shape, params), product(parts, *shape, bits, block)
    scales = np.abs(parts["scales"].astype(np.float32)).repeat(block, 1)[:, : shape[1]]
    largest = (
        2.0**bits if params["zero_points"] == "packed" else 2.0**bits + np.abs(parts["zero_points"]).max()
    )
    assert (np.abs(ours.astype(np.float64) - theirs) <= scales * largest * 2.0**-23).all()


# Its operator takes no floating-point zero points beside eight bits.
@pytest.mark.parametrize(
    ("bits", "kind"),
    [(bits, kind) for bits in (2, 4, 8) for kind in ("none", "packed")] + [(2, "float"), (4, "float")],
)
@MATRICES
def test_operator_inputs_encoded_here_are_read_by_it(bits, kind, outputs, inputs, block):
    params = {
        "bits": bits,
        "block_size": block,
        "symmetric": kind == "none",
        "zero_points": "float" if kind == "float" else "packed",
    }
    assert_product(run.encode(MATMULNBITS, normal(outputs, inputs), params), params, (outputs, inputs))


@BITS
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
@MATRICES
def test_operator_inputs_that_it_makes_are_read_here(bits, symmetric, outputs, inputs, block):
    values = normal(outputs, inputs)
    blocks = -(-inputs // block)
    parts = {
        "B": np.zeros((outputs, blocks, block * bits // 8), np.uint8),
        "scales": np.zeros((outputs, blocks), np.float32),
        "zero_points": np.zeros((outputs, -(-blocks * bits // 8)), np.uint8),
    }
    make = getattr(quantizers, f"quantize_matmul_{bits}bits")
    source = np.ascontiguousarray(values.T)
    make(parts["B"], source, parts["scales"], parts["zero_points"], block, outputs, inputs, symmetric)
    if symmetric:
        del parts["zero_points"]
    params = {"bits": bits, "block_size": block, "zero_points": "packed", "symmetric": symmetric}
    assert_product(parts, params, values.shape)
    decoded = run.decode(MATMULNBITS, parts, values.shape, params)
    assert np.sqrt(np.mean((decoded - values) ** 2)) < {2: 0.6, 4: 0.12, 8: 0.01}[bits]


@BITS
@MATRICES
def test_random_operator_inputs_are_read_as_it_does(bits, outputs, inputs, block):
    drawn = np.random.default_rng([bits, outputs])
    blocks = -(-inputs // block)
    parts = {
        "B": drawn.integers(0, 256, (outputs, blocks, block * bits // 8), np.uint8),
        "scales": drawn.standard_normal((outputs, blocks)).astype(np.float32),
        "zero_points": drawn.integers(0, 256, (outputs, -(-blocks * bits // 8)), np.uint8),
    }
    params = {"bits": bits, "block_size": block, "zero_points": "packed"}
    assert_product(parts, params, (outputs, inputs))
    if inputs % block or blocks * bits % 8:
        return
    # The same bytes as an initializer in blocks: (code - zero) x scale, word by word.
    kind = getattr(onnx.TensorProto, f"UINT{bits}")
    tensors = [
        onnx.TensorProto(name="x", data_type=kind, dims=(outputs, inputs), raw_data=parts["B"].tobytes()),
        onnx.numpy_helper.from_array(parts["scales"], "s"),
        onnx.TensorProto(
            name="z", data_type=kind, dims=(outputs, blocks), raw_data=parts["zero_points"].tobytes()
        ),
    ]
    node = linear("DequantizeLinear", ["x", "s", "z"], ["Y"], 1, block)
    theirs = evaluated([node], tensors, {}, (outputs, inputs))
    assert_same_numbers(run.decode(MATMULNBITS, parts, (outputs, inputs), params), theirs)
