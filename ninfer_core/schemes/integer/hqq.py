"""HQQ (scheme page 5.17): the code matrix cut into slabs of rows that share words, zero points as real numbers."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report, report_not_finite
from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.integer.groups import SCALES, one_nan, stored_scales
from ninfer_core.schemes.run import CannotEncode, Refusal, refuse_parameter, refuse_shape

_NAME = "hqq"
_THREES: Final = 10  # slabs of three-bit codes in an int32, which leaves its two top bits free


def _slabs(bits: int) -> int:
    return _THREES if bits == 3 else 8 // bits


def _word(bits: int) -> type[np.int32] | type[np.uint8]:
    return np.int32 if bits == 3 else np.uint8


def _rows(shape: Shape, params: Params) -> tuple[int, int]:
    """The matrix of codes: groups are its rows (axis 1) or its columns (axis 0). Raises: SchemeRefused."""
    count = math.prod(shape)
    size: int = params["group_size"]
    if (
        size == -1 and shape
    ):  # the tool's `None`: the tensor is not cut, and its own rows or columns are groups
        size = shape[-1] if params["axis"] == 1 else shape[0]
    if size < 1:
        raise refuse_parameter(
            _NAME, "group_size", "a positive number, or -1 for a whole row or column", size
        )
    if not count or count % size:
        raise refuse_shape(_NAME, shape, f"whole groups of {size}")
    rows, columns = (count // size, size) if params["axis"] == 1 else (size, count // size)
    slabs = _slabs(params["bits"])
    if params["bits"] != 3 and rows % slabs:
        raise refuse_shape(
            _NAME, shape, f"a code matrix whose rows are cut into {slabs} equal slabs, not {rows}"
        )
    return rows, columns


def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts. Raises: SchemeRefused."""
    rows, columns = _rows(shape, params)
    each = (rows, 1) if params["axis"] == 1 else (1, columns)
    return {"W_q": (-(-rows // _slabs(params["bits"])), columns), "scale": each, "zero": each}


def _check_words(parts: Parts, params: Params, findings: Findings) -> None:
    expected = np.dtype(_word(params["bits"])).name
    found = parts["W_q"].dtype.name
    if found != expected:
        message = f"W_q holds {found}, but codes of {params['bits']} bits are kept in {expected}"
        findings.add("scheme.part_dtype", message, where={"part": "W_q"}, expected=expected, found=found)


def _codes(parts: Parts, rows: int, params: Params) -> Array:
    """Codes uint8 [rows, columns]; slab 0 sits highest in the words. Raises: SchemeRefused."""
    bits, words = params["bits"], parts["W_q"]
    refusal = Refusal(_NAME)
    _check_words(parts, params, refusal.findings)
    refusal.settle()
    slabs = _slabs(bits)
    mask = (1 << bits) - 1
    cut = [words >> bits * (slabs - 1 - slab) & mask for slab in range(slabs)]
    return np.concatenate(cut)[:rows].astype(np.uint8)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """(code - zero) x scale, both roundings in binary32. Raises: SchemeRefused for words of the wrong type."""
    rows, _columns = _rows(shape, params)
    values = _codes(parts, rows, params).astype(np.float32)
    values -= parts["zero"].astype(np.float32)
    values *= parts["scale"].astype(np.float32)
    return one_nan(values, parts["zero"], parts["scale"]).reshape(shape)


def _rules(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    report_not_finite(findings, "scale_not_finite", "scale", parts["scale"])
    report_not_finite(findings, "value_not_finite", "zero", parts["zero"])
    _check_words(parts, params, findings)
    if params["bits"] != 3 or parts["W_q"].dtype != np.int32:
        return
    words = parts["W_q"].view(np.uint32)
    rows, _columns = _rows(shape, params)
    row = np.arange(words.shape[0])[:, None]
    behind = np.zeros(words.shape, np.bool_)  # rows of codes that fill the last slab
    for slab in range(_THREES):
        beyond = row + slab * words.shape[0] >= rows
        behind |= beyond & ((words >> np.uint32(3 * (_THREES - 1 - slab)) & np.uint32(7)) != 0)
    spoilt = behind | (words >> np.uint32(30) != 0)
    report(findings, "padding_nonzero", "W_q", spoilt, words, "has nonzero bits that hold no code", 0)


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each group, without HQQ's optimizer: scale (max - min) / (2^bits - 1), zero -min / scale.

    Raises: CannotEncode.
    """
    bits, axis = params["bits"], params["axis"]
    rows, columns = _rows(values.shape, params)
    if not np.isfinite(values).all():
        raise CannotEncode("NaN and infinity have no place on a grid")
    table = values.reshape(rows, columns)
    levels = np.float32((1 << bits) - 1)
    low, high = table.min(axis=axis, keepdims=True), table.max(axis=axis, keepdims=True)
    scales = stored_scales(high / levels - low / levels, np.float16)
    zeros = (-low / scales.astype(np.float32)).astype(np.float16)
    if not np.isfinite(zeros).all():
        raise CannotEncode("a zero point is too large for float16: a group is far from zero and narrow")
    steps = np.rint(table / scales.astype(np.float32) + zeros.astype(np.float32))
    codes = np.clip(steps, 0, levels).astype(_word(bits))
    slabs = _slabs(bits)
    cut = np.pad(codes, ((0, -rows % slabs), (0, 0))).reshape(slabs, -1, columns)
    words = np.zeros(cut.shape[1:], _word(bits))
    for slab in range(slabs):
        words |= cut[slab] << bits * (slabs - 1 - slab)
    return {"W_q": words, "scale": scales, "zero": zeros}


def word(params: Params) -> tuple[Slice, ...]:
    """The codes of one word: the same row of every slab, the first one highest."""
    bits = params["bits"]
    slabs = _slabs(bits)
    unused = (Slice("unused", 2),) if bits == 3 else ()
    return (*(Slice(f"slab {slab}", bits) for slab in range(slabs - 1, -1, -1)), *unused)


HQQ = Form(
    _NAME,
    "file",
    "HQQ checkpoints: s (q - z), groups with a real zero point, slabs of rows in the bits of a word",
    ("out", "in"),
    (
        Part(
            "W_q",
            ("uint8", "int32"),
            "[rows*bits/8, columns]",
            "codes; three bits: int32 [ceil(rows/10), columns]",
        ),
        Part("scale", SCALES, "[rows, 1] or [1, columns]", "what a step of the codes is worth"),
        Part("zero", SCALES, "as scale", "the real number that is subtracted from the codes"),
    ),
    (
        Parameter("bits", "integer", "width of a code", default=4, choices=(1, 2, 3, 4, 8)),
        Parameter(
            "group_size",
            "integer",
            "values that share a scale; -1 for a whole row (axis 1) or column (axis 0) of the tensor",
            default=64,
        ),
        Parameter(
            "axis",
            "integer",
            "1: a group is a row of the code matrix; 0: a column",
            default=1,
            choices=(0, 1),
        ),
    ),
    stored,
    decode,
    "hqq 0.2.8.post1 Quantizer.dequantize in float32",
    rules=(_rules,),
    encode=encode,
    encoding="plain",
    word=word,
    notes="Older saves also quantize scale and zero; decode those two tensors first, they are of this form themselves.",
)
