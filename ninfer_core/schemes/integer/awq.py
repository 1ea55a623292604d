"""AWQ (scheme page 5.3): eight 4-bit codes in an int32 word, interleaved along the outputs or plain along the inputs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, stream_of, words_of
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
    group_size_of,
    matrix,
    one_nan,
    report_padding,
)
from ninfer_core.schemes.run import refuse_shape

COLUMNS: Final = (0, 2, 4, 6, 1, 3, 5, 7)  # the column, of eight, that nibble i of a word holds
_NIBBLES: Final = np.argsort(COLUMNS)  # and the nibble that holds column j: 0 4 1 5 2 6 3 7
_PER_WORD: Final = 8


def _grouped(shape: Shape, params: Params) -> tuple[int, int, int]:
    """Inputs, outputs and the size of a group. Raises: SchemeRefused."""
    inputs, outputs = matrix("awq", shape, "[in, out] for GEMM, [out, in] for GEMV")
    return inputs, outputs, group_size_of("awq", inputs, params)


def stored_gemm(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts of a [K, N] weight. Raises: SchemeRefused."""
    inputs, outputs, size = _grouped(shape, params)
    if outputs % _PER_WORD or inputs % size:
        raise refuse_shape("awq", shape, f"outputs in eights and inputs in whole groups of {size}")
    words = outputs // _PER_WORD
    return {
        "qweight": (inputs, words),
        "qzeros": (inputs // size, words),
        "scales": (inputs // size, outputs),
    }


def infer_gemm(shapes: Mapping[str, Shape], _params: Params) -> Shape:
    """[K, N] from `qweight`. Raises: SchemeRefused."""
    words = shapes.get("qweight", ())
    if len(words) != 2:
        raise refuse_shape("awq", words, "qweight of [K, N/8]")
    return words[0], words[1] * _PER_WORD


def interleaved_codes(words: Array, outputs: int) -> Array:
    """The codes of interleaved words [rows, N/8], in the order of the columns."""
    plain = codes_of(words, 4, outputs).reshape(len(words), outputs // _PER_WORD, _PER_WORD)
    return plain[:, :, _NIBBLES].reshape(len(words), outputs)


def interleaved_words(codes: Array) -> Array:
    """The words int32 [rows, N/8] that hold codes [rows, N]."""
    eights = codes.reshape(len(codes), codes.shape[1] // _PER_WORD, _PER_WORD)[:, :, list(COLUMNS)]
    return words_of(eights.reshape(codes.shape), 4, np.uint32).view(np.int32)


def decode_gemm(parts: Parts, shape: Shape, params: Params) -> Values:
    """scale x (code - zero)."""
    _inputs, outputs, size = _grouped(shape, params)
    zeros = interleaved_codes(parts["qzeros"], outputs)
    codes = interleaved_codes(parts["qweight"], outputs)
    return affine(codes, np.repeat(zeros, size, axis=0), np.repeat(parts["scales"], size, axis=0))


def fast_gemm(parts: Parts, shape: Shape, params: Params) -> Values:
    """`decode_gemm`, compiled."""
    from ninfer_core.schemes.compiled.gptq import interleaved

    _inputs, outputs, size = _grouped(shape, params)
    zeros = interleaved_codes(parts["qzeros"], outputs).astype(np.float32)
    scales = parts["scales"].astype(np.float32)
    return one_nan(interleaved(parts["qweight"].view(np.uint32), zeros, scales, size), scales)


def encode_gemm(values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each group. Raises: CannotEncode."""
    inputs, outputs, size = _grouped(values.shape, params)
    grouped = values.reshape(inputs // size, size, outputs).transpose(0, 2, 1)
    made = grid(grouped, 4, params["symmetric"], np.float16)
    return {
        "qweight": interleaved_words(made.codes.transpose(0, 2, 1).reshape(inputs, outputs)),
        "qzeros": interleaved_words(made.zeros.astype(np.uint8)),
        "scales": made.scales,
    }


def _gemv_width(inputs: int, size: int) -> int:
    """Words of zero points in a row: padded so that rows of small groups start where the kernel loads them."""
    words = -(-(inputs // size) // _PER_WORD)
    several = {32: 4, 64: 2}.get(size, 1)
    return -(-words // several) * several


def stored_gemv(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts of a [N, K] weight. Raises: SchemeRefused."""
    inputs, outputs, size = _grouped(shape[::-1], params)
    if inputs % _PER_WORD or inputs % size:
        raise refuse_shape("awq_gemv", shape, f"inputs in eights and in whole groups of {size}")
    width = _gemv_width(inputs, size)
    return {
        "qweight": (outputs, inputs // _PER_WORD),
        "qzeros": (outputs, width),
        "scales": (outputs, width * _PER_WORD),
    }


def infer_gemv(shapes: Mapping[str, Shape], _params: Params) -> Shape:
    """[N, K] from `qweight`. Raises: SchemeRefused."""
    words = shapes.get("qweight", ())
    if len(words) != 2:
        raise refuse_shape("awq_gemv", words, "qweight of [N, K/8]")
    return words[0], words[1] * _PER_WORD


def decode_gemv(parts: Parts, shape: Shape, params: Params) -> Values:
    """scale x (code - zero), groups along the last axis."""
    inputs, _outputs, size = _grouped(shape[::-1], params)
    zeros = codes_of(parts["qzeros"], 4, inputs // size)
    scales = parts["scales"][:, : inputs // size]
    codes = codes_of(parts["qweight"], 4, inputs)
    return affine(codes, np.repeat(zeros, size, axis=1), np.repeat(scales, size, axis=1))


def fast_gemv(parts: Parts, shape: Shape, params: Params) -> Values:
    """`decode_gemv`, compiled where groups are whole bytes."""
    from ninfer_core.schemes.compiled.blocks import affine as blocks

    inputs, outputs, size = _grouped(shape[::-1], params)
    if size % 2:
        return decode_gemv(parts, shape, params)
    packed = stream_of(parts["qweight"]).reshape(outputs, inputs // size, size // 2)
    zeros = codes_of(parts["qzeros"], 4, inputs // size).astype(np.float32)
    scales = parts["scales"][:, : inputs // size].astype(np.float32)
    return one_nan(blocks(packed, zeros, scales, 4, inputs), scales)


def encode_gemv(values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each group. Raises: CannotEncode."""
    inputs, outputs, size = _grouped(values.shape[::-1], params)
    made = grid(values.reshape(outputs, inputs // size, size), 4, params["symmetric"], np.float16)
    behind = _gemv_width(inputs, size) * _PER_WORD - inputs // size
    return {
        "qweight": words_of(made.codes.reshape(outputs, inputs), 4, np.uint32).view(np.int32),
        "qzeros": words_of(np.pad(made.zeros, ((0, 0), (0, behind))), 4, np.uint32).view(np.int32),
        "scales": np.pad(made.scales, ((0, 0), (0, behind))),
    }


def _scales_rule(parts: Parts, _shape: Shape, _params: Params, findings: Findings) -> None:
    report_not_finite(findings, "scale_not_finite", "scales", parts["scales"])


def _gemv_rules(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    inputs, _outputs, size = _grouped(shape[::-1], params)
    groups, scales = inputs // size, parts["scales"]
    report_not_finite(findings, "scale_not_finite", "scales", scales[:, :groups])
    report_padding(findings, "qzeros", parts["qzeros"], 4, groups)
    behind = scales != 0
    behind[:, :groups] = False
    report(findings, "padding_nonzero", "scales", behind, scales, "holds scales behind the last group", 0)


def _gemm_word(_params: Params) -> tuple[Slice, ...]:
    return tuple(Slice(f"n+{column}", 4) for column in COLUMNS)


def _gemv_word(_params: Params) -> tuple[Slice, ...]:
    return stream_word("k+", 4, 32)


AWQ = Form(
    "awq",
    "file",
    "AWQ checkpoints, version GEMM: s (q - z), columns interleaved in each word",
    ("in", "out"),
    (
        Part("qweight", ("int32",), "[K, N/8]", "codes of eight outputs in a word"),
        Part("qzeros", ("int32",), "[K/group_size, N/8]", "zero points, packed alike"),
        Part("scales", SCALES, "[K/group_size, N]", "what a step of the codes is worth"),
    ),
    (
        Parameter("group_size", "integer", "input channels that share a scale; -1 for all", default=128),
        SYMMETRIC,
    ),
    stored_gemm,
    decode_gemm,
    "autoawq 0.2.9 dequantize_gemm",
    infer=infer_gemm,
    rules=(_scales_rule,),
    encode=encode_gemm,
    encoding="plain",
    fast=fast_gemm,
    word=_gemm_word,
)
AWQ_GEMV = replace(
    AWQ,
    name="awq_gemv",
    summary="AWQ checkpoints, version GEMV: s (q - z), packed along the inputs in plain order",
    axes=("out", "in"),
    parts=(
        Part("qweight", ("int32",), "[N, K/8]", "codes of eight inputs in a word"),
        Part("qzeros", ("int32",), "[N, W]", "zero points of the row, W words with padding for small groups"),
        Part(
            "scales", SCALES, "[N, 8 W]", "what a step of the codes is worth; padding behind the last group"
        ),
    ),
    stored=stored_gemv,
    decode=decode_gemv,
    oracle="autoawq 0.2.9 WQLinear_GEMV.from_linear",
    infer=infer_gemv,
    rules=(_gemv_rules,),
    encode=encode_gemv,
    fast=fast_gemv,
    word=_gemv_word,
)
