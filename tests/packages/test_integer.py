"""Integer forms and four-bit tables against packages of others, on random data and in both directions.

`make test-oracles` runs this folder where those packages are; elsewhere it is skipped.
"""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.integer import BNB_FP4, BNB_NF4, HQQ, LINEAR_ONNX, MATMULNBITS, PACK_QUANTIZED
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
RNG_SEED = 2026


def normal(*shape):
    return np.random.default_rng([RNG_SEED, *shape]).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason=REASON)


@pytest.fixture(scope="module")
def ort():
    return pytest.importorskip("onnxruntime", reason=REASON)


@pytest.mark.parametrize("form", [BNB_NF4, BNB_FP4], ids=lambda form: form.name)
@pytest.mark.parametrize(("count", "size"), [(4096, 64), (1000, 64), (129, 128), (4096, 256)])
@pytest.mark.parametrize("nested", [False, True])
def test_tables_are_those_of_bitsandbytes(torch, form, count, size, nested):
    functional = pytest.importorskip("bitsandbytes.functional", reason=REASON)
    values = normal(1, count)  # one row: its dequantizer misplaces scales where blocks straddle rows
    kind = form.name.removeprefix("bnb_")
    packed, state = functional.quantize_4bit(
        torch.from_numpy(values), blocksize=size, quant_type=kind, compress_statistics=nested
    )
    parts = {"payload": packed.reshape(-1).numpy(), "code": state.code.numpy()}
    if nested:
        parts |= {
            "absmax_u8": state.absmax.numpy(),
            "nested_absmax": state.state2.absmax.numpy(),
            "nested_code": state.state2.code.numpy(),
            "offset": np.atleast_1d(state.offset.numpy()).astype(np.float32),
        }
    else:
        parts["absmax"] = state.absmax.numpy()
        ours = run.encode(form, values, {"block_size": size})
        for name, array in ours.items():
            np.testing.assert_array_equal(array, parts[name])
    assert run.check(form, parts, values.shape, {"block_size": size}) == []
    # One of its two ways gives code 8 of FP4 as -0, though the table that it hands out says 0.
    expected = functional.dequantize_4bit(packed, state).numpy() + np.float32(0)
    assert_same_numbers(run.decode(form, parts, values.shape, {"block_size": size}), expected)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("symmetric", [True, False])
def test_packed_rows_are_those_of_compressed_tensors(torch, bits, symmetric):
    packing = pytest.importorskip("compressed_tensors.compressors.pack_quantized.helpers", reason=REASON)
    params = {"bits": bits, "group_size": 24, "symmetric": symmetric}
    values = normal(33, 120)
    parts = run.encode(PACK_QUANTIZED, values, params)
    codes = packing.unpack_from_int32(torch.from_numpy(parts["weight_packed"]), bits, torch.Size((33, 120)))
    again = packing.pack_to_int32(codes, bits).numpy()
    np.testing.assert_array_equal(again, parts["weight_packed"])
    zeros = torch.zeros((33, 5), dtype=torch.int8)
    if not symmetric:
        packed = torch.from_numpy(parts["weight_zero_point"])
        zeros = packing.unpack_from_int32(packed, bits, torch.Size((33, 5)), packed_dim=0)
        again = packing.pack_to_int32(zeros, bits, packed_dim=0).numpy()
        np.testing.assert_array_equal(again, parts["weight_zero_point"])
    scales = torch.from_numpy(parts["weight_scale"]).to(torch.float32).repeat_interleave(24, 1)
    expected = (codes.to(torch.float32) - zeros.to(torch.float32).repeat_interleave(24, 1)) * scales
    assert_same_numbers(run.decode(PACK_QUANTIZED, parts, values.shape, params), expected.numpy())


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("axis", [0, 1])
def test_slabs_are_those_of_hqq(torch, bits, axis):
    quantize = pytest.importorskip("hqq.core.quantize", reason=REASON)
    values = normal(48, 160)
    packed, meta = quantize.Quantizer.quantize(
        torch.from_numpy(values),
        nbits=bits,
        group_size=64,
        axis=axis,
        optimize=False,
        compute_dtype=torch.float32,
        device="cpu",
    )
    parts = {
        "W_q": packed.numpy(),
        "scale": meta["scale"].to(torch.float16).numpy(),
        "zero": meta["zero"].to(torch.float16).numpy(),
    }
    params = {"bits": bits, "group_size": 64, "axis": axis}
    meta["scale"], meta["zero"] = (
        torch.from_numpy(parts[name]).to(torch.float32) for name in ("scale", "zero")
    )
    expected = quantize.Quantizer.dequantize(packed, meta).numpy()
    assert_same_numbers(run.decode(HQQ, parts, values.shape, params), expected)
    ours = run.encode(HQQ, values, params)
    meta["scale"], meta["zero"] = (
        torch.from_numpy(ours[name]).to(torch.float32) for name in ("scale", "zero")
    )
    expected = quantize.Quantizer.dequantize(torch.from_numpy(ours["W_q"]), meta).numpy()
    assert_same_numbers(run.decode(HQQ, ours, values.shape, params), expected)
    # No group is further off than by the tool's own grid: both divide its span by 2^bits - 1.
    assert np.abs(expected - values).max() <= np.ptp(values) / (2**bits - 1)


def evaluated(ort, node, initializers, inputs, output):
    """What onnxruntime computes with one node; `inputs` are named arrays."""
    import onnx
    from onnx import TensorProto, helper

    typed = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    result = helper.make_tensor_value_info("Y", TensorProto.FLOAT, output)
    graph = helper.make_graph([node], "g", typed, [result], initializers)
    opsets = [helper.make_opsetid("", 25), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
    onnx.checker.check_model(model) if node.domain == "" else None
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


@pytest.mark.parametrize("name", ["int8", "uint8", "int4", "uint4", "int2", "uint2"])
@pytest.mark.parametrize(
    ("shape", "axis", "block"), [((6, 35), None, 0), ((5, 4, 3), 1, 0), ((7, 96), 1, 32), ((64, 9), 0, 16)]
)
def test_initializers_are_those_of_onnxruntime(ort, name, shape, axis, block):
    from onnx import TensorProto, helper

    params = {"type": name, "block_size": block} | ({} if axis is None else {"axis": axis})
    values = normal(*shape)
    parts = run.encode(LINEAR_ONNX, values, params)
    kind = getattr(TensorProto, name.upper())
    bits = int(name.lstrip("uint"))
    tensors = [TensorProto(name="x", data_type=kind, dims=shape, raw_data=parts["payload"].tobytes())]
    scale = parts["scale"].reshape(()) if axis is None else parts["scale"]
    tensors.append(helper.make_tensor("s", TensorProto.FLOAT, scale.shape, scale.ravel().tolist()))
    names = ["x", "s"]
    if "zero_point" in parts:
        from ninfer_core.schemes.bits import words_of

        packed = words_of(parts["zero_point"].reshape(-1), bits)
        tensors.append(TensorProto(name="z", data_type=kind, dims=scale.shape, raw_data=packed.tobytes()))
        names.append("z")
    more = {} if axis is None else {"axis": axis}
    node = helper.make_node("DequantizeLinear", names, ["Y"], block_size=block, **more)
    expected = evaluated(ort, node, tensors, {}, shape)
    assert_same_numbers(run.decode(LINEAR_ONNX, parts, shape, params), expected)


# Its operator takes no floating-point zero points beside eight bits.
@pytest.mark.parametrize(
    ("bits", "kind"),
    [
        (bits, kind)
        for bits in (2, 4, 8)
        for kind in ("none", "packed", "float")
        if (bits, kind) != (8, "float")
    ],
)
@pytest.mark.parametrize(("outputs", "inputs", "block"), [(24, 128, 32), (8, 80, 32), (16, 64, 16)])
def test_operator_inputs_are_those_of_onnxruntime(ort, bits, kind, outputs, inputs, block):
    from onnx import helper, numpy_helper

    params = {
        "bits": bits,
        "block_size": block,
        "symmetric": kind == "none",
        "zero_points": "float" if kind == "float" else "packed",
    }
    values = normal(outputs, inputs)
    parts = run.encode(MATMULNBITS, values, params)
    tensors = [numpy_helper.from_array(parts[name], name) for name in parts]
    names = ["A", "B", "scales", *(["zero_points"] if kind != "none" else [])]
    node = helper.make_node(
        "MatMulNBits", names, ["Y"], domain="com.microsoft", K=inputs, N=outputs, bits=bits, block_size=block
    )
    identity = np.eye(inputs, dtype=np.float32)
    expected = evaluated(ort, node, tensors, {"A": identity}, (inputs, outputs)).T
    decoded = run.decode(MATMULNBITS, parts, values.shape, params)
    np.testing.assert_allclose(decoded, expected, rtol=0, atol=1e-5)
