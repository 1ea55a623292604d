"""The two engines: every leaf type by its ONNX meaning, and a reason wherever one of them cannot say."""

import sys

import numpy as np
import onnx
import pytest

from ninfer_core.schemes.functions.build import Builder, Typed
from ninfer_core.schemes.functions.evaluate import FunctionFailed, Unsupported, run_onnxruntime, run_reference
from ninfer_core.schemes.structs.leaves import LEAVES, LeafType
from ninfer_core.schemes.structs.model import Array, Declaration, Declared, Leaf
from ninfer_core.schemes.structs.view import view

# What onnxruntime 1.32 has no casts of; decoders of file forms read these as codes.
LACKING = {"FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2"}


def _cast(leaf: str, count: int) -> onnx.FunctionProto:
    builder = Builder("cast", [Typed("x", leaf, (count,))])
    return builder.finish(builder.cast(builder.inputs[0], "FLOAT"), (count,))


def _integer(leaf: LeafType, word: int) -> float:
    """Two's complement where the type is signed."""
    return float(word - (word >> leaf.bits - 1 << leaf.bits if leaf.kind == "signed" else 0))


# A number of each float type, by hand: section 5 of the scheme specification and IEEE 754.
FLOATS = {
    "FLOAT4E2M1": {0x7: 6.0, 0xA: -1.0},
    "FLOAT6E2M3": {0x1F: 7.5, 0x22: -0.25},
    "FLOAT6E3M2": {0x1F: 28.0, 0x22: -0.125},
    "FLOAT8E4M3FN": {0x7E: 448.0, 0x81: -(2.0**-9)},
    "FLOAT8E4M3FNUZ": {0x7F: 240.0, 0x81: -(2.0**-10)},
    "FLOAT8E5M2": {0x7B: 57344.0, 0x81: -(2.0**-16)},
    "FLOAT8E5M2FNUZ": {0x7F: 57344.0, 0x81: -(2.0**-17)},
    "FLOAT8E8M0": {0x00: 2.0**-127, 0x80: 2.0},
    "FLOAT16": {0x3C05: 1.0048828125, 0x8001: -(2.0**-24)},
    "BFLOAT16": {0x3F80: 1.0, 0xC2F7: -123.5},
    "FLOAT": {0x3F800000: 1.0, 0x80000001: -(2.0**-149)},
    "DOUBLE": {0x3FF0000000000000: 1.0, 0xC05EE00000000000: -123.5},
}


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_a_leaf_means_the_same_to_both_engines(leaf: LeafType) -> None:
    integers = (0, 1) if leaf.kind == "bool" else (1, (1 << leaf.bits) - 1)
    known = FLOATS.get(leaf.name) or {word: _integer(leaf, word) for word in integers}
    words, count = list(known), 8  # eight fill bytes at every width
    bits = sum(word << leaf.bits * i for i, word in enumerate(words))
    payload = bits.to_bytes(leaf.bits * count // 8, "little")
    (viewed,) = view(Declared((Declaration(Array(Leaf(leaf.name), count)),), 0), payload)
    function = _cast(leaf.name, count)
    wanted = np.array(list(known.values()), np.float32)
    found = run_reference(function, [viewed.array])
    assert np.array_equal(found[: len(words)].view(np.uint32), wanted.view(np.uint32))
    if leaf.name in LACKING:
        with pytest.raises(Unsupported, match="onnxruntime"):
            run_onnxruntime(function, [viewed.array])
    else:
        assert np.array_equal(
            run_onnxruntime(function, [viewed.array]).view(np.uint32), found.view(np.uint32)
        )


@pytest.mark.parametrize("run", [run_reference, run_onnxruntime])
def test_what_a_function_does_not_fit_is_said(run: object) -> None:
    x = np.zeros(2, np.uint8)
    sound = _cast("UINT8", 2)
    with pytest.raises(FunctionFailed, match="takes 1 leaves, not 2"):
        run(sound, [x, x])  # type: ignore[operator]
    with pytest.raises(FunctionFailed, match="comes as float32"):
        run(sound, [x.astype(np.float32)])  # type: ignore[operator]
    two = onnx.FunctionProto()
    two.CopyFrom(sound)
    two.output.append("cast_0")
    with pytest.raises(FunctionFailed, match="one output"):
        run(two, [x])  # type: ignore[operator]


def test_a_result_that_is_not_the_declared_one_is_refused() -> None:
    builder = Builder("f", [Typed("x", "UINT8", (2,))])
    function = builder.finish(builder.cast(builder.inputs[0], "FLOAT"), (3,))
    with pytest.raises(FunctionFailed, match="declares float32"):
        run_reference(function, [np.zeros(2, np.uint8)])


def test_operands_that_do_not_fit_stop_the_evaluator() -> None:
    builder = Builder("f", [Typed("x", "FLOAT", (2,))])
    function = builder.finish(builder.reshape(builder.inputs[0], 3), (3,))
    with pytest.raises(FunctionFailed, match="stops"):
        run_reference(function, [np.zeros(2, np.float32)])


def test_a_parameter_of_the_shape_is_bound_by_the_leaf() -> None:
    builder = Builder("f", [Typed("x", "UINT8", ("n",))])
    function = builder.finish(builder.cast(builder.inputs[0], "FLOAT"), ("n",))
    for count in (0, 3):
        assert run_reference(function, [np.ones(count, np.uint8)]).shape == (count,)
        assert run_onnxruntime(function, [np.ones(count, np.uint8)]).shape == (count,)


def test_without_onnxruntime_the_reason_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unsupported, match="extra `onnx`"):
        run_onnxruntime(_cast("UINT8", 1), [np.zeros(1, np.uint8)])
