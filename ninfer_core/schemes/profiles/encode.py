"""Numbers into the payload of a profile, where the rules fix the codes: nearest ones, scales by one formula."""

import math
from typing import Any

import numpy as np

from ninfer_core.schemes.bits import words_of
from ninfer_core.schemes.form import Array, Shape, Values
from ninfer_core.schemes.hadamard import transform
from ninfer_core.schemes.profiles.encode_blocks import (
    codebook,
    constant_scale,
    floating_point,
    structured_block,
)
from ninfer_core.schemes.profiles.kinds import leaf_of, runs
from ninfer_core.schemes.profiles.model import (
    Cast,
    Codebook,
    FloatingPoint,
    Function,
    Linear,
    Log,
    Quantization,
    Rotation,
    ScaleFloat,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
)
from ninfer_core.schemes.profiles.nearest import finite, floats, integers, over
from ninfer_core.schemes.profiles.packing import payload_of
from ninfer_core.schemes.profiles.tiles import apart, cut
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.structs.leaves import LEAVES


def encode(quantization: Quantization, values: Values) -> Array:
    """The payload uint8[...] of `values`; its type is `translate(quantization, values.shape)`.

    Raises: SchemeRefused, StructFault; CannotEncode where no rule fixes the codes or the values have none.
    """
    declared = translate(quantization, values.shape)
    encoder = _Encoder()
    with np.errstate(all="ignore"):
        encoder.level(quantization, values, values.shape, "")
    return payload_of(declared, encoder.words)


class _Encoder:
    """Fills words by path. Values of a level are [*batch, *shape], `batch` being the counts around it."""

    def __init__(self) -> None:
        self.words: dict[str, Array] = {}

    def level(self, quantization: Quantization, x: Values, shape: Shape, path: str) -> None:
        """The words of one level and of those below."""
        for rotation, post in ((quantization.post_rotation, True), (quantization.pre_rotation, False)):
            if rotation is not None:
                x = _unrotated(x, rotation, post)
        kind, at, batch = quantization.kind, f"{path}." if path else "", x.shape[: x.ndim - len(shape)]
        match kind:
            case Linear():
                self._linear(kind, x, shape, at)
            case Codebook():
                codebook(self.words, kind, x.reshape(*batch, math.prod(shape)), at)
            case FloatingPoint():
                floating_point(self.words, kind, x, shape, path)
            case Sparse():
                self._sparse(kind, x, shape, path)
            case Log():
                self._log(kind, x.reshape(*batch, math.prod(shape)), at)
            case Tiling():
                self._tiling(kind, x, shape, path)
            case Cast():
                self._cast(kind, x, shape, path)
            case StructuredBlock():
                structured_block(self.words, kind, x, shape, at)
            case Function():
                raise CannotEncode(f"only {kind.quantize_op} knows how to encode")

    def _put(self, name: str, codes: Any, leaf: str, bits: int, batch: Shape) -> None:
        """Codes [*batch, ...] as leaves of their width, else as streams for each of `batch`."""
        held = np.asarray(codes)
        if LEAVES[leaf].bits != bits:
            held = words_of(held.reshape(*batch, math.prod(held.shape[len(batch) :])), bits)
        self.words[name] = held

    def _linear(self, kind: Linear, x: Values, shape: Shape, at: str) -> None:
        batch, leaf = x.shape[: x.ndim - len(shape)], leaf_of(kind)
        if isinstance(kind.zero_point, ZeroField):
            raise CannotEncode("no rule says how a stored zero point is chosen")
        zero = np.asarray(kind.zero_point, np.float64)
        if isinstance(kind.zero_point, tuple):
            zero = zero.reshape([-1 if axis == kind.axis else 1 for axis in range(len(shape))])
        scaled = over(x, constant_scale(kind.scale, shape, kind.axis)).astype(np.float64)
        if LEAVES[leaf].kind == "float" and LEAVES[leaf].bits == kind.bits:
            codes = floats((scaled + zero).astype(np.float32), leaf)
        else:
            codes = integers(np.rint(scaled) + zero, leaf, kind.bits)
        dims = shape if batch else (math.prod(shape),)
        self._put(f"{at}values", codes.reshape(*batch, *dims), leaf, kind.bits, batch)

    def _sparse(self, kind: Sparse, x: Values, shape: Shape, path: str) -> None:
        if x.ndim != len(shape):
            raise CannotEncode("outliers of a repeated structure have no place")
        flat = x.reshape(-1)
        indices = np.flatnonzero(np.abs(flat) > np.float32(kind.outlier_threshold))
        if len(indices) != kind.outliers:
            raise CannotEncode(
                f"{len(indices):,} values are above the threshold {kind.outlier_threshold:g}, and the type holds "
                f"{kind.outliers:,} outliers"
            )
        at = (f"{path}." if path else "") + ("outlier_" if kind.prefixed else "")
        self.words[f"{at}indices"] = indices.astype(np.int64)
        self.words[f"{at}values"] = floats(flat[indices], kind.outlier_data_type)
        base = flat.copy()
        base[indices] = 0
        self.level(kind.base, base.reshape(shape), shape, f"{path}.base" if path else "base")

    def _log(self, kind: Log, x: Values, at: str) -> None:
        finite(x)
        if not kind.has_sign and (x < 0).any():
            raise CannotEncode("the values hold negative numbers, and there is no sign")
        codes = log_codes(kind, x)
        leaf = f"UINT{kind.bits}" if kind.bits in (2, 4, 8, 16) else "UINT8"
        self._put(f"{at}codes", codes, leaf, kind.bits, x.shape[:-1])
        if kind.has_sign:  # zero is positive (R13)
            self.words[f"{at}signs"] = words_of((x < 0).astype(np.uint8), 1)

    def _cast(self, kind: Cast, x: Values, shape: Shape, path: str) -> None:
        words = floats(x, kind.storage_type)
        if not path:
            whole = 8 // math.gcd(8, LEAVES[kind.storage_type].bits)
            padded = np.zeros(-(-words.size // whole) * whole, words.dtype)
            padded[: words.size] = words.reshape(-1)
            words = padded
        self.words[path] = words

    def _tiling(self, kind: Tiling, x: Values, shape: Shape, path: str) -> None:
        tiles, rank = cut(kind, shape), x.ndim - len(shape)
        batch = x.shape[:rank]
        if not kind.axes:
            padded = np.zeros((*batch, tiles.count * tiles.tile[0]), np.float32)
            padded[..., : math.prod(shape)] = x.reshape(*batch, math.prod(shape))
            held = padded.reshape(*batch, tiles.count, *tiles.tile)
        else:
            held = _taken_apart(x, kind, shape, batch)
        if kind.stacked:
            self._stacked(kind, held, path)
            return
        at = f"{path}." if path else ""
        if len(kind.elem_quant) == 1:
            inner = held.reshape(*batch, *tiles.dims, *tiles.tile)
            self.level(kind.elem_quant[0], inner, tiles.tile, f"{at}{kind.field}")
            return
        start = 0
        for number, (index, count) in enumerate(runs(tiles.count, len(kind.elem_quant))):
            part = held[(slice(None),) * rank + (slice(start, start + count),)]
            self.level(kind.elem_quant[index], part, tiles.tile, f"{at}{kind.field}_{number}")
            start += count

    def _stacked(self, kind: Tiling, held: Values, path: str) -> None:
        linear = [element.kind for element in kind.elem_quant if isinstance(element.kind, Linear)]
        scales = np.asarray([item.scale.value for item in linear if isinstance(item.scale, ScaleFloat)])
        zeros = np.asarray([item.zero_point for item in linear], np.float64)[:, None]
        scaled = over(held, scales.astype(np.float32)[:, None]).astype(np.float64)
        leaf = leaf_of(linear[0])
        codes = integers(np.rint(scaled) + zeros, leaf, linear[0].bits)
        self._put(f"{path}.values" if path else "values", codes, leaf, linear[0].bits, held.shape[:-1])


def log_codes(kind: Log, x: Values) -> Array:
    """The code of each finite magnitude nearest in its logarithm; zero has that of the smallest (R13)."""
    magnitudes = np.abs(x.astype(np.float64))
    smallest = 0 if kind.base > 1 else (1 << kind.bits) - 1
    with np.errstate(divide="ignore"):
        exponents = np.log(magnitudes) / math.log(kind.base) - kind.offset
    codes = np.clip(np.rint(np.where(magnitudes > 0, exponents, smallest)), 0, (1 << kind.bits) - 1)
    return codes.astype(np.int64)


def _taken_apart(x: Values, kind: Tiling, shape: Shape, batch: Shape) -> Values:
    """Tiles [*batch, tiles, *tile in memory order] of a tensor; what is behind its end is zero (R10)."""
    tiles = cut(kind, shape)
    whole, split, order = apart(tiles, len(batch))
    padded = np.zeros((*batch, *whole), np.float32)
    padded[(slice(None),) * len(batch) + tuple(slice(size) for size in shape)] = x
    moved = padded.reshape(*batch, *split).transpose(order)
    return moved.reshape(*batch, tiles.count, *tiles.tile)


def _unrotated(x: Values, rotation: Rotation, post: bool) -> Values:
    """What is stored of a tensor whose decoding ends with this rotation."""
    full = len(rotation.dims) == 2
    if rotation.matrix_type == "HADAMARD":
        return transform(x, rotation.dims[0], -2 if post and full else -1)
    if full:
        raise CannotEncode("the inverse of a full matrix is not part of the profile")
    matrix = np.asarray(rotation.matrix, np.float32)
    return over(x, matrix) if post else np.asarray(x * matrix, np.float32)
