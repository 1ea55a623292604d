"""The inputs of the operator MatMulNBits (scheme page 5.16): blocks of the inputs of a column, each a stream of codes."""

from collections.abc import Mapping

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, words_of
from ninfer_core.schemes.faults import report, report_not_finite
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
    matrix,
    one_nan,
    report_padding,
)
from ninfer_core.schemes.run import Refusal, refuse_parameter

_NAME = "matmulnbits"


def _blocks(shape: Shape, params: Params) -> tuple[int, int, int, int]:
    """Outputs, inputs, blocks and their size. Raises: SchemeRefused."""
    outputs, inputs = matrix(_NAME, shape, "[N, K]")
    size = params["block_size"]
    if size < 1 or size * params["bits"] % 8:
        raise refuse_parameter(_NAME, "block_size", "as many codes as fill whole bytes", size)
    return outputs, inputs, -(-inputs // size), size


def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts. Raises: SchemeRefused."""
    outputs, _inputs, blocks, size = _blocks(shape, params)
    bits = params["bits"]
    packed = params["zero_points"] == "packed"
    width = -(-blocks * bits // 8) if packed else blocks
    flat = params["flat"]
    return {
        "B": (outputs, blocks, size * bits // 8),
        "scales": (outputs * blocks,) if flat else (outputs, blocks),
        "zero_points": (outputs * width,) if flat else (outputs, width),
    }


def _check_zeros(parts: Parts, params: Params, findings: Findings) -> None:
    if "zero_points" not in parts:
        return
    packed, found = params["zero_points"] == "packed", parts["zero_points"].dtype.name
    expected = "uint8" if packed else parts["scales"].dtype.name
    if found != expected:
        message = (
            f"zero_points holds {found}; {params['zero_points']} ones are {expected} beside these scales"
        )
        findings.add(
            "scheme.part_dtype", message, where={"part": "zero_points"}, expected=expected, found=found
        )


def zeros_of(parts: Parts, shape: Shape, params: Params) -> Array | int:
    """Zero points [N, blocks], integers or float32, or the default one. Raises: SchemeRefused for a wrong type."""
    outputs, _inputs, blocks, _size = _blocks(shape, params)
    bits = params["bits"]
    if "zero_points" not in parts:
        return int(1 << bits - 1)
    refusal = Refusal(_NAME)
    _check_zeros(parts, params, refusal.findings)
    refusal.settle()
    if params["zero_points"] == "packed":
        return codes_of(parts["zero_points"].reshape(outputs, -(-blocks * bits // 8)), bits, blocks)
    return parts["zero_points"].reshape(outputs, blocks).astype(np.float32)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """(code - zero) x scale [N, K]; the operator computes A x W^T. Raises: SchemeRefused."""
    outputs, inputs, blocks, size = _blocks(shape, params)
    codes = codes_of(parts["B"], params["bits"], size)  # [N, blocks, size]
    zeros = zeros_of(parts, shape, params)
    scales = parts["scales"].reshape(outputs, blocks, 1)
    if isinstance(zeros, int):
        values = affine(codes, zeros, scales)
    elif zeros.dtype == np.uint8:
        values = affine(codes, zeros[..., None], scales)
    else:
        values = codes.astype(np.float32)
        values -= zeros[..., None]
        values *= scales.astype(np.float32)
        values = one_nan(values, zeros, scales)
    return np.ascontiguousarray(values.reshape(outputs, blocks * size)[:, :inputs])


def fast(parts: Parts, shape: Shape, params: Params) -> Values:
    """`decode`, compiled."""
    from ninfer_core.schemes.compiled.blocks import affine as blocks

    outputs, inputs, count, _size = _blocks(shape, params)
    scales = parts["scales"].reshape(outputs, count).astype(np.float32)
    zeros = np.broadcast_to(np.asarray(zeros_of(parts, shape, params), np.float32), scales.shape)
    return one_nan(blocks(parts["B"], zeros, scales, params["bits"], inputs), zeros, scales)


def _rules(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    outputs, inputs, blocks, size = _blocks(shape, params)
    bits = params["bits"]
    report_not_finite(findings, "scale_not_finite", "scales", parts["scales"])
    report_padding(findings, "B", parts["B"].reshape(outputs, blocks * size * bits // 8), bits, inputs)
    _check_zeros(parts, params, findings)
    if "zero_points" not in parts:
        return
    zeros = parts["zero_points"]
    if params["zero_points"] == "float":
        report_not_finite(findings, "value_not_finite", "zero_points", zeros)
    elif zeros.dtype == np.uint8:
        report_padding(findings, "zero_points", zeros.reshape(outputs, -(-blocks * bits // 8)), bits, blocks)
    if zeros.dtype != np.uint8:
        wide = zeros.astype(np.float32)
        wrong = (wide < 0) | (wide > (1 << bits) - 1)
        report(
            findings,
            "zero_point_out_of_range",
            "zero_points",
            wrong,
            zeros,
            "is outside of the codes",
            f"0 to {(1 << bits) - 1}",
        )


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each block, zero points packed unless symmetric. Raises: CannotEncode."""
    outputs, inputs, blocks, size = _blocks(values.shape, params)
    bits = params["bits"]
    padded = np.zeros((outputs, blocks * size), np.float32)
    padded[:, :inputs] = values
    made = grid(padded.reshape(outputs, blocks, size), bits, params["symmetric"], np.float32)
    codes = made.codes.reshape(outputs, blocks * size).copy()
    codes[:, inputs:] = 0
    scales = made.scales.reshape(-1) if params["flat"] else made.scales
    parts: dict[str, Array] = {"B": words_of(codes.reshape(outputs, blocks, size), bits), "scales": scales}
    if not params["symmetric"]:
        packed = params["zero_points"] == "packed"
        zeros = words_of(made.zeros, bits) if packed else made.zeros.astype(np.float32)
        parts["zero_points"] = zeros.reshape(-1) if params["flat"] else zeros
    return parts


def word(params: Params) -> tuple[Slice, ...]:
    """The codes of one byte."""
    return stream_word("k+", params["bits"], 8)


MATMULNBITS = Form(
    _NAME,
    "file",
    "the weight inputs of onnxruntime's operator MatMulNBits: s (q - z)",
    ("out", "in"),
    (
        Part("B", ("uint8",), "[N, ceil(K/block_size), block_size*bits/8]", "codes, a stream in each block"),
        Part("scales", SCALES, "[N, ceil(K/block_size)]", "what a step of the codes is worth"),
        Part(
            "zero_points",
            ("uint8", *SCALES),
            "[N, ceil(ceil(K/block_size)*bits/8)], or as scales where they are floats",
            "the codes of 0; absent, 2^(bits-1)",
            optional=True,
        ),
    ),
    (
        Parameter("bits", "integer", "width of a code", default=4, choices=(2, 4, 8)),
        Parameter("block_size", "integer", "inputs that share a scale", default=32),
        Parameter(
            "zero_points",
            "text",
            "how zero points are stored where there are any",
            default="packed",
            choices=("packed", "float"),
        ),
        Parameter("flat", "flag", "scales and zero points have one dimension", default=False),
        SYMMETRIC,
    ),
    stored,
    decode,
    "onnxruntime 1.32.0 MatMulNBits with an identity matrix",
    rules=(_rules,),
    encode=encode,
    encoding="plain",
    fast=fast,
    word=word,
)
