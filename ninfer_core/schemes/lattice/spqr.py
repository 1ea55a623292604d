"""SpQR in its compressed runtime form: three-bit codes, scales and zero points that are three-bit codes again, outliers.

One 64-bit word holds a row of a 16 x 16 tile: ws, wz and sixteen codes of three bits from the bottom, then a byte of the
tile's record, then two spare bits (5.23). Rows 2j and 2j + 1 repeat byte j of that record.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report
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
from ninfer_core.schemes.lattice.outliers import (
    OFFSETS,
    ORDER,
    OUTLIERS,
    check_outliers,
    permuted,
    refuse_outliers,
)
from ninfer_core.schemes.run import CannotEncode, refuse_parameter, refuse_shape

_NAME: Final = "spqr"
_SIDE: Final = 16
_CODES: Final = 3 * np.arange(18, dtype=np.uint64)
_RECORD: Final = 54
_LEVELS: Final = 7
_FACTORS: Final = ("s_s", "z_s", "s_z", "z_z")

Halves = NDArray[np.float16]


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2 or shape[0] % _SIDE or shape[1] % _SIDE or shape[1] > 1 << 16:
        raise refuse_shape(_NAME, shape, f"[out, in], multiples of {_SIDE}, with up to 65,536 inputs")
    outputs, inputs = shape
    stored: dict[str, Shape] = {
        "dense_weights": (outputs * inputs // _SIDE,),
        OFFSETS: (outputs + 1,),
        ORDER: (inputs,),
    }
    outliers = params["outliers"]
    if outliers is None:
        return stored  # row_offsets says it
    if not 0 <= outliers <= outputs * inputs:
        raise refuse_parameter(_NAME, "outliers", f"0 to {outputs * inputs}", outliers)
    return stored | {OUTLIERS: (outliers,)}


def _tiles(parts: Parts, shape: Shape) -> NDArray[np.uint64]:
    """The words as [tile row, tile column, row of the tile]."""
    words = np.ascontiguousarray(parts["dense_weights"]).view(np.uint64)
    return words.reshape(shape[0] // _SIDE, shape[1] // _SIDE, _SIDE)


def codes_of(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The eighteen three-bit fields of each word: ws, wz, then the codes of a row."""
    return (words[..., np.newaxis] >> _CODES & np.uint64(7)).astype(np.uint8)


def records_of(words: NDArray[np.uint64]) -> Halves:
    """The four numbers of each tile, float16[..., 4], from the even rows: s_s, z_s, s_z, z_z."""
    record = (words[..., ::2] >> np.uint64(_RECORD)).astype(np.uint8)
    return np.ascontiguousarray(record).view(np.dtype("<f2"))


def _line(codes: NDArray[np.uint8], factor: Halves, zero: Halves) -> Halves:
    """factor (code - zero), rounded to binary16 after each step, as the tool does."""
    return (codes.astype(np.float16) - zero) * factor


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Binary16 arithmetic: scale and zero point of a row first, then its codes, then the outliers are added.

    Raises: SchemeRefused for outliers or a permutation that point outside.
    """
    refuse_outliers(_NAME, parts, shape)
    words = _tiles(parts, shape)
    fields = codes_of(words)
    factor, zero_factor, offset, zero_offset = np.moveaxis(records_of(words)[..., np.newaxis, :], -1, 0)
    scales = _line(fields[..., 0], factor, offset)[..., np.newaxis]
    zeros = _line(fields[..., 1], zero_factor, zero_offset)[..., np.newaxis]
    tiles = _line(fields[..., 2:], scales, zeros)  # [tile row, tile column, row, column]
    values = np.ascontiguousarray(tiles.transpose(0, 2, 1, 3)).reshape(shape)
    return permuted(parts, values).astype(np.float32)


def _repeated(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    words = _tiles(parts, shape)
    record = (words >> np.uint64(_RECORD)).astype(np.uint8)
    differs = np.repeat(record[..., 0::2] != record[..., 1::2], 2, axis=-1)
    differs[..., 0::2] = False
    message = "holds other bytes of the tile's record in the odd row than in the even one"
    _report_words(findings, "redundant_differs", differs, parts, message, "one record for each tile")


def _padding(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    spare = (_tiles(parts, shape) >> np.uint64(62)) != 0
    _report_words(findings, "padding_nonzero", spare, parts, "has its two spare bits set", "zero")


def _finite(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    records = records_of(_tiles(parts, shape))
    at_fault = np.zeros((*records.shape[:2], _SIDE), np.bool_)
    at_fault[..., ::4] = ~np.isfinite(records)  # a number begins in the row that holds its low byte
    message = f"holds NaN or infinity in a tile's record ({', '.join(_FACTORS)})"
    _report_words(findings, "scale_not_finite", at_fault, parts, message, "finite numbers")


def _report_words(
    findings: Findings, slug: str, at_fault: NDArray[np.bool_], parts: Parts, message: str, expected: str
) -> None:
    flat = parts["dense_weights"]
    report(findings, slug, "dense_weights", at_fault.reshape(flat.shape), flat, message, expected)


def _outliers(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    check_outliers(parts, shape, findings)


def _fit(numbers: NDArray[np.float32]) -> tuple[NDArray[np.uint8], Halves, Halves]:
    """Three-bit codes along the last axis with the factor and the zero that come nearest to `numbers` at both ends."""
    low = numbers.min(axis=-1, keepdims=True)
    step = (numbers.max(axis=-1, keepdims=True) - low) / np.float32(_LEVELS)
    flat = step == 0
    factor = np.where(flat, np.where(low == 0, np.float32(1), low), step).astype(np.float16)
    safe = np.where(factor == 0, np.float16(1), factor).astype(np.float32)
    zero = np.where(flat, np.where(low == 0, np.float32(0), np.float32(-1)), -low / safe).astype(np.float16)
    codes = np.rint(numbers / safe + zero.astype(np.float32))
    return np.clip(codes, 0, _LEVELS).astype(np.uint8), factor, zero


def encode(values: Values, params: Params) -> dict[str, Array]:
    """The base alone, with no outlier: each row of sixteen from its lowest to its highest value, zero included.

    The scales and the zero points of a tile are spread over three bits in the same way.

    Raises: CannotEncode.
    """
    if params["outliers"]:
        raise CannotEncode(f"{_NAME} is encoded without outliers: which weights are some, calibration says")
    outputs, inputs = values.shape
    if not np.isfinite(values).all():
        raise CannotEncode(f"{_NAME} holds finite values only")
    tiles = values.reshape(outputs // _SIDE, _SIDE, inputs // _SIDE, _SIDE).transpose(0, 2, 1, 3)
    low = tiles.min(axis=-1, initial=0)
    step = (tiles.max(axis=-1, initial=0) - low) / np.float32(_LEVELS)
    zero = np.where(step == 0, np.float32(0), -low / np.where(step == 0, np.float32(1), step))
    ws, factor, offset = _fit(step)
    wz, zero_factor, zero_offset = _fit(zero)
    scales = _line(ws, factor, offset).astype(np.float32)[..., np.newaxis]
    zeros = _line(wz, zero_factor, zero_offset).astype(np.float32)[..., np.newaxis]
    records = np.concatenate([factor, zero_factor, offset, zero_offset], axis=-1)
    if not (np.isfinite(records).all() and np.isfinite(scales).all() and np.isfinite(zeros).all()):
        raise CannotEncode(f"{_NAME}: a scale or zero point of a tile is beyond binary16")
    wanted = np.rint(tiles / np.where(scales == 0, np.float32(1), scales) + zeros)
    codes = np.clip(wanted, 0, _LEVELS).astype(np.uint8)
    fields = np.concatenate([ws[..., np.newaxis], wz[..., np.newaxis], codes], axis=-1).astype(np.uint64)
    words = np.bitwise_or.reduce(fields << _CODES, axis=-1)
    pieces = np.repeat(np.ascontiguousarray(records, np.dtype("<f2")).view(np.uint8), 2, axis=-1)
    words |= pieces.astype(np.uint64) << np.uint64(_RECORD)
    return {
        "dense_weights": words.view(np.int64).ravel(),
        OFFSETS: np.zeros(outputs + 1, np.int32),
        OUTLIERS: np.zeros(0, np.int32),
    }


def _word(params: Params) -> tuple[Slice, ...]:
    codes = stream_word("code ", 3, 3 * _SIDE)
    return (Slice("ws", 3), Slice("wz", 3), *codes, Slice("byte of the record", 8), Slice("spare", 2))


_PERMUTATIONS: Final[tuple[str, ...]] = ("int16", "uint16", "int32", "int64")
SPQR: Final = Form(
    name=_NAME,
    kind="file",
    summary="Three-bit codes in tiles of 16 x 16 with two orders of scales, and single weights that are added.",
    axes=("out", "in"),
    parts=(
        Part("dense_weights", ("int64",), "[M*N/16]", "a word for each row of each tile, tiles row by row"),
        Part(OFFSETS, ("int32",), "[M+1]", "where the outliers of each row begin"),
        Part(OUTLIERS, ("int32",), "[outliers]", "column in the low half, binary16 in the high half; added"),
        Part(ORDER, _PERMUTATIONS, "[N]", "the input that each stored column belongs to", optional=True),
    ),
    parameters=(
        Parameter("outliers", "integer", "single weights that are added; absent: as row_offsets says", None),
    ),
    stored=_stored,
    decode=decode,
    rules=(_repeated, _padding, _finite, _outliers),
    encode=encode,
    encoding="plain",
    oracle="spqr-quant 0.2.0, its functions compiled for a CPU",
    word=_word,
)
