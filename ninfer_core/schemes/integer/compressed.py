"""compressed-tensors `pack-quantized` (scheme page 5.2): offset codes of 1 to 8 bits, one stream along each row."""

from collections.abc import Mapping

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, stream_of, words_for, words_of
from ninfer_core.schemes.faults import report_not_finite
from ninfer_core.schemes.form import (
    Array,
    Form,
    Parameter,
    Params,
    Part,
    Parts,
    Shape,
    Slice,
    Values,
    stream_word,
)
from ninfer_core.schemes.integer.groups import (
    SCALES,
    SYMMETRIC,
    affine,
    grid,
    group_size_of,
    matrix,
    one_nan,
    report_padding,
)
from ninfer_core.schemes.run import CannotEncode

_NAME = "ct_pack_quantized"


def _grouped(shape: Shape, params: Params) -> tuple[int, int, int]:
    """Outputs, inputs and the size of a group. Raises: SchemeRefused."""
    outputs, inputs = matrix(_NAME, shape, "[out, in]")
    return outputs, inputs, group_size_of(_NAME, inputs, params)


def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts. Raises: SchemeRefused."""
    outputs, inputs, size = _grouped(shape, params)
    bits, groups = params["bits"], -(-inputs // size)
    return {
        "weight_packed": (outputs, words_for(bits, inputs)),
        "weight_scale": (outputs, groups),
        "weight_zero_point": (words_for(bits, outputs), groups),
        "weight_shape": (2,),
    }


def _by_channel(grouped: Array, inputs: int, size: int) -> Array:
    return np.repeat(grouped, size, axis=1)[:, :inputs]


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """scale x (code - zero); both are stored with 2^(bits-1) added, a zero point that is absent is that offset."""
    outputs, inputs, size = _grouped(shape, params)
    bits = params["bits"]
    codes = codes_of(parts["weight_packed"], bits, inputs)
    zeros: Array | int = 1 << bits - 1
    if "weight_zero_point" in parts:
        zeros = _by_channel(codes_of(parts["weight_zero_point"], bits, outputs, axis=0), inputs, size)
    return affine(codes, zeros, _by_channel(parts["weight_scale"], inputs, size))


def fast(parts: Parts, shape: Shape, params: Params) -> Values:
    """`decode`, compiled for codes that straddle no byte in groups of whole bytes."""
    from ninfer_core.schemes.compiled.blocks import affine as blocks

    outputs, inputs, size = _grouped(shape, params)
    bits = params["bits"]
    if bits not in (2, 4, 8) or inputs % size or size * bits % 8:
        return decode(parts, shape, params)
    packed = stream_of(parts["weight_packed"])[:, : inputs * bits // 8]
    scales = parts["weight_scale"].astype(np.float32)
    zeros = np.full(scales.shape, 1 << bits - 1, np.float32)
    if "weight_zero_point" in parts:
        zeros = codes_of(parts["weight_zero_point"], bits, outputs, axis=0).astype(np.float32)
    grouped = packed.reshape(outputs, inputs // size, size * bits // 8)
    return one_nan(blocks(grouped, zeros, scales, bits, inputs), scales)


def _rules(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    outputs, inputs, _size = _grouped(shape, params)
    report_not_finite(findings, "scale_not_finite", "weight_scale", parts["weight_scale"])
    report_padding(findings, "weight_packed", parts["weight_packed"], params["bits"], inputs)
    if "weight_zero_point" in parts:
        report_padding(
            findings, "weight_zero_point", parts["weight_zero_point"], params["bits"], outputs, axis=0
        )
    if "weight_shape" in parts and parts["weight_shape"].tolist() != list(shape):
        found = parts["weight_shape"].tolist()
        message = f"weight_shape says {found}, the tensor was decoded as {list(shape)}"
        findings.add(
            "scheme.redundant_differs",
            message,
            where={"part": "weight_shape"},
            expected=list(shape),
            found=found,
        )


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each group. Raises: CannotEncode."""
    outputs, inputs, size = _grouped(values.shape, params)
    if inputs % size:
        raise CannotEncode(
            f"{inputs} inputs are no whole groups of {size}; compressed-tensors writes whole ones"
        )
    bits = params["bits"]
    made = grid(values.reshape(outputs, inputs // size, size), bits, params["symmetric"], np.float16)
    parts: dict[str, Array] = {
        "weight_packed": words_of(made.codes.reshape(outputs, inputs), bits, np.uint32).view(np.int32),
        "weight_scale": made.scales,
        "weight_shape": np.array(values.shape, np.int64),
    }
    if not params["symmetric"]:
        parts["weight_zero_point"] = words_of(made.zeros, bits, np.uint32, axis=0).view(np.int32)
    return parts


def word(params: Params) -> tuple[Slice, ...]:
    """The codes of the first word of a row."""
    return stream_word("k+", params["bits"], 32)


PACK_QUANTIZED = Form(
    _NAME,
    "file",
    "compressed-tensors pack-quantized: dense streams of offset codes",
    ("out", "in"),
    (
        Part(
            "weight_packed",
            ("int32",),
            "[N, ceil(K*bits/32)]",
            "code + 2^(bits-1), a low-bits-first stream a row",
        ),
        Part("weight_scale", SCALES, "[N, ceil(K/group_size)]", "what a step of the codes is worth"),
        Part(
            "weight_zero_point",
            ("int32",),
            "[ceil(N*bits/32), ceil(K/group_size)]",
            "zero points + 2^(bits-1), a stream down each column; absent in symmetric schemes",
            optional=True,
        ),
        Part("weight_shape", ("int64", "int32"), "[2]", "the shape before packing", optional=True),
    ),
    (
        Parameter("bits", "integer", "width of a code", default=4, choices=tuple(range(1, 9))),
        Parameter("group_size", "integer", "inputs that share a scale; -1 for a row", default=128),
        SYMMETRIC,
    ),
    stored,
    decode,
    "compressed-tensors 0.20.1 pack_to_int32 and unpack_from_int32",
    rules=(_rules,),
    encode=encode,
    encoding="plain",
    fast=fast,
    word=word,
    notes="A file that also holds weight_g_idx orders its groups by activation, which the tool has given up; it is not read "
    "by this form, whose groups follow each other.",
)
