"""What the integer forms share: groups of codes with a scale and a zero point each, read and made on a grid."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import code_dtype, spare_bytes
from ninfer_core.schemes.form import Array, Parameter, Params, Shape, Values
from ninfer_core.schemes.run import CannotEncode, refuse_parameter, refuse_shape

SCALES: Final = ("float16", "bfloat16", "float32")
SYMMETRIC: Final = Parameter(
    "symmetric",
    "flag",
    "what the label says of the zero points: all 2^(bits-1) (true), any (false); the encoder follows it",
    default=True,
)


def group_size_of(form: str, whole: int, params: Params) -> int:
    """The stated group size, never above the whole axis, which -1 stands for. Raises: SchemeRefused."""
    size: int = params["group_size"]
    if size < 1 and size != -1:
        raise refuse_parameter(form, "group_size", "a positive number, or -1 for the whole axis", size)
    return max(whole, 1) if size == -1 else min(size, max(whole, 1))


def matrix(form: str, shape: Shape, axes: str) -> tuple[int, int]:
    """The two dimensions. Raises: SchemeRefused for another rank."""
    if len(shape) != 2:
        raise refuse_shape(form, shape, f"two dimensions, {axes}")
    return shape[0], shape[1]


def one_nan(values: Values, *factors: Array) -> Values:
    """The values, every NaN that a factor without a finite value gave made the one NaN: processors differ in its sign."""
    if not all(np.isfinite(factor).all() for factor in factors):
        values[np.isnan(values)] = np.float32(np.nan)
    return values


def affine(codes: Array, zeros: Array | int, scales: Array) -> Values:
    """scale x (code - zero): the difference exact, one rounding in binary32."""
    centred = codes.astype(np.int32)
    centred -= zeros if isinstance(zeros, int) else zeros.astype(np.int32)
    values = centred.astype(np.float32)
    values *= scales.astype(np.float32)
    return one_nan(values, scales)


def report_padding(
    findings: Findings, part: str, words: Array, bits: int, count: int, axis: int = -1
) -> None:
    """The finding about bits behind the last code of a stream, which is read along `axis`."""
    rest = spare_bytes(words, bits, count, axis)
    spoilt = int(np.count_nonzero(rest))
    if not spoilt:
        return
    *stream, byte = (int(n) for n in np.unravel_index(int(np.argmax(rest != 0)), rest.shape))
    findings.add(
        "scheme.padding_nonzero",
        f"{part} has nonzero bits behind the last code of a stream: {spoilt:,} bytes",
        where={"part": part, "stream": stream, "byte": bits * count // 8 + byte},
        expected=0,
        found=rest[(*stream, byte)],
        count=spoilt,
    )


@dataclass(frozen=True, slots=True)
class Grid:
    """Groups on their grids: codes unsigned [..., size], scales and zeros [...]."""

    codes: NDArray[Any]
    scales: NDArray[Any]
    zeros: NDArray[np.int32]


def grid(groups: Values, bits: int, symmetric: bool, scale_dtype: Any) -> Grid:
    """Groups [..., size] rounded half to even to 2^bits levels around zero, by the scale as it is stored (R5).

    Symmetric: scale 2 max|x| / (2^bits - 1), zero 2^(bits-1). Otherwise the span of the values and 0 is divided into
    2^bits - 1 steps. Raises: CannotEncode for values or scales that are not finite.
    """
    if not np.isfinite(groups).all():
        raise CannotEncode("NaN and infinity have no place on a grid")
    levels = (1 << bits) - 1
    low = np.minimum(groups.min(axis=-1, initial=0), np.float32(0))
    high = np.maximum(groups.max(axis=-1, initial=0), np.float32(0))
    if symmetric:
        high = np.maximum(-low, high)
        low = -high
    scales = stored_scales((high / np.float32(levels)) - (low / np.float32(levels)), scale_dtype)
    wide = scales.astype(np.float32)
    if symmetric:
        zeros = np.full(wide.shape, 1 << bits - 1, np.int32)
    else:
        zeros = np.clip(np.rint(-low / wide), 0, levels).astype(np.int32)
    # Quotients may be large where the scale was lifted or rounded: clipped as numbers before they become integers.
    steps = np.rint(groups / wide[..., None])
    codes = np.clip(steps + zeros[..., None].astype(np.float32), 0, levels)
    return Grid(codes.astype(code_dtype(bits)), scales, zeros)


def stored_scales(scales: Values, dtype: Any) -> NDArray[Any]:
    """Positive scales in their stored type: 1 for a group of zeros, the smallest number where one would vanish.

    Raises: CannotEncode for one that the type cannot hold.
    """
    kept = np.where(scales == 0, np.float32(1), scales).astype(dtype)
    if kept.dtype == np.float32:
        return kept
    smallest = np.array(1, np.uint16).view(kept.dtype)
    kept = np.where(kept == 0, smallest, kept)
    if not np.isfinite(kept.astype(np.float32)).all():
        raise CannotEncode(f"a scale is too large for {kept.dtype.name}")
    return kept
