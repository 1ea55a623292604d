"""GPTQ, both conventions of its zero points (scheme page 5.2): codes run down the input channels in int32 words."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

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
    group_size_of,
    matrix,
    one_nan,
)
from ninfer_core.schemes.run import Refusal, refuse_shape

_PARTS = (
    Part("qweight", ("int32",), "[K*bits/32, N]", "codes, one low-bits-first stream down each column"),
    Part(
        "qzeros", ("int32",), "[ceil(K/group_size), N*bits/32]", "zero points, the same stream along each row"
    ),
    Part("scales", SCALES, "[ceil(K/group_size), N]", "what a step of the codes is worth"),
    Part("g_idx", ("int32",), "[K]", "the group of each input channel; absent, k/group_size", optional=True),
)
_PARAMETERS = (
    Parameter("bits", "integer", "width of a code", default=4, choices=(2, 3, 4, 8)),
    Parameter("group_size", "integer", "input channels that share a scale; -1 for all", default=128),
    SYMMETRIC,
)


def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts of a [K, N] weight. Raises: SchemeRefused where words are not filled."""
    inputs, outputs = matrix("gptq", shape, "[in, out]")
    bits = params["bits"]
    if inputs * bits % 32 or outputs * bits % 32:
        raise refuse_shape("gptq", shape, f"codes of {bits} bits that fill whole 32-bit words both ways")
    groups = -(-inputs // group_size_of("gptq", inputs, params))
    return {
        "qweight": (inputs * bits // 32, outputs),
        "qzeros": (groups, outputs * bits // 32),
        "scales": (groups, outputs),
        "g_idx": (inputs,),
    }


def infer(shapes: Mapping[str, Shape], params: Params) -> Shape:
    """[K, N] from `qweight`. Raises: SchemeRefused."""
    words = shapes.get("qweight", ())
    if len(words) != 2 or words[0] * 32 % params["bits"]:
        raise refuse_shape("gptq", words, "qweight of [K*bits/32, N]")
    return words[0] * 32 // params["bits"], words[1]


def groups_of(parts: Parts, inputs: int, params: Params) -> Array:
    """The group of each input channel. Raises: SchemeRefused for one that has no scale."""
    if "g_idx" not in parts:
        return np.arange(inputs) // group_size_of("gptq", inputs, params)
    refusal = Refusal("gptq")
    _check_groups(parts, refusal.findings)
    refusal.settle()
    return parts["g_idx"]


def stored_zeros(parts: Parts, params: Params) -> Array:
    """The zero points as they are stored, [groups, N]."""
    return codes_of(parts["qzeros"], params["bits"], parts["scales"].shape[1])


def _zeros(parts: Parts, params: Params, offset: int) -> Array:
    return (stored_zeros(parts, params) + np.uint8(offset)) & np.uint8((1 << params["bits"]) - 1)


def _decode(offset: int, parts: Parts, shape: Shape, params: Params) -> Values:
    """scale x (code - zero), zero = (stored + offset) mod 2^bits. Raises: SchemeRefused for a group out of range."""
    groups = groups_of(parts, shape[0], params)
    codes = codes_of(parts["qweight"], params["bits"], shape[0], axis=0)
    return affine(codes, _zeros(parts, params, offset)[groups], parts["scales"][groups])


def _fast(offset: int, parts: Parts, shape: Shape, params: Params) -> Values:
    """The same, compiled."""
    from ninfer_core.schemes.compiled.gptq import columns

    groups = groups_of(parts, shape[0], params).astype(np.int64)
    zeros = _zeros(parts, params, offset).astype(np.float32)
    scales = parts["scales"].astype(np.float32)
    words = parts["qweight"].view(np.uint32)
    return one_nan(columns(words, zeros, scales, groups, params["bits"]), scales)


def _check_groups(parts: Parts, findings: Findings) -> None:
    if "g_idx" not in parts:
        return
    index, limit = parts["g_idx"], parts["scales"].shape[0]
    wrong = (index < 0) | (index >= limit)
    report(
        findings,
        "group_out_of_range",
        "g_idx",
        wrong,
        index,
        "names a group without a scale",
        f"0 to {limit - 1}",
        limit=limit,
    )


def _rules(parts: Parts, _shape: Shape, _params: Params, findings: Findings) -> None:
    report_not_finite(findings, "scale_not_finite", "scales", parts["scales"])
    _check_groups(parts, findings)


def _wrapped(parts: Parts, _shape: Shape, params: Params, findings: Findings) -> None:
    # Stored zero 2^bits - 1 means 0 to a decoder that wraps and 2^bits to one that does not.
    zeros = stored_zeros(parts, params)
    most = (1 << params["bits"]) - 1
    report(
        findings,
        "zero_point_wraps",
        "qzeros",
        zeros == most,
        zeros,
        "holds zero 0 as minus one",
        f"below {most}",
        zero=0,
    )


def zeros_for(zeros: Array, bits: int, convention: str) -> Array:
    """Zero points [groups, N] as a convention stores them: `gptq` less one, `gptq_v2` as they are, `none` not at all.

    Raises: SchemeRefused with `scheme.zero_point_unrepresentable` for a zero 0 that `gptq` could only wrap around, or
    one that is not the 2^(bits-1) which a target without zero points (`none`) takes for granted.
    """
    if convention == "gptq_v2":
        return zeros
    middle = 1 << bits - 1
    if convention == "gptq":
        wrong, expected, message = zeros < 1, "1 or more", "holds a zero point that has no place one below"
    elif convention == "none":
        wrong, expected = zeros != middle, str(middle)
        message = f"holds a zero point other than {middle}, which has no place where none are stored"
    else:
        raise ValueError(f"{convention} is no convention of zero points")
    refusal = Refusal("gptq")
    if wrong.any():
        zero = int(zeros[wrong][0])
        report(
            refusal.findings,
            "zero_point_unrepresentable",
            "qzeros",
            wrong,
            zeros,
            message,
            expected,
            zero=zero,
        )
    refusal.settle()
    if convention == "none":
        return zeros[:0]
    less: Array = zeros - zeros.dtype.type(1)
    return less


def _encode(convention: str, values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each group. Raises: CannotEncode, SchemeRefused for a zero point that has no place."""
    inputs, outputs = values.shape
    bits, size = params["bits"], group_size_of("gptq", inputs, params)
    starts = range(0, inputs, size)
    grids = [grid(values[at : at + size].T, bits, params["symmetric"], np.float16) for at in starts]
    empty = np.zeros((0, outputs), np.uint8)
    codes = np.concatenate([empty, *(each.codes.T for each in grids)])
    zeros = np.stack([each.zeros for each in grids]) if grids else empty
    return {
        "qweight": words_of(codes, bits, np.uint32, axis=0).view(np.int32),
        "qzeros": words_of(zeros_for(zeros, bits, convention), bits, np.uint32).view(np.int32),
        "scales": np.stack([each.scales for each in grids]) if grids else empty.astype(np.float16),
        "g_idx": (np.arange(inputs) // size).astype(np.int32),
    }


def word(params: Params) -> tuple[Slice, ...]:
    """The codes of one word: input channels of one output."""
    return stream_word("k+", params["bits"], 32)


GPTQ = Form(
    "gptq",
    "file",
    "GPTQ checkpoints, format `gptq` (v1): s (q - (z + 1)), zero points are stored less one",
    ("in", "out"),
    _PARTS,
    _PARAMETERS,
    stored,
    partial(_decode, 1),
    "auto-gptq 0.7.1 pack and CPU forward",
    infer=infer,
    rules=(_rules, _wrapped),
    encode=partial(_encode, "gptq"),
    encoding="plain",
    fast=partial(_fast, 1),
    word=word,
    notes="Some kernels do not wrap a stored zero of 2^bits - 1 around to 0; others do, and so does this decoder.",
)
GPTQ_V2 = replace(
    GPTQ,
    name="gptq_v2",
    summary="GPTQ checkpoints, format `gptq_v2`: s (q - z), zero points are stored as they are",
    decode=partial(_decode, 0),
    rules=(_rules,),
    encode=partial(_encode, "gptq_v2"),
    fast=partial(_fast, 0),
    notes="",
)
