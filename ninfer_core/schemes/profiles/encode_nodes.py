"""The encoder of a profile written down as nodes: the walk of `encode` with steps that operators have.

What follows from an exact comparison stays one: a logarithm is the number of levels that a magnitude reaches.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.encode import log_codes
from ninfer_core.schemes.profiles.encode_blocks import constant_scale
from ninfer_core.schemes.profiles.encode_nodes_blocks import codebook, floating_point, structured_block
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
from ninfer_core.schemes.profiles.node_ops import NodeOps
from ninfer_core.schemes.profiles.node_payload import stream
from ninfer_core.schemes.profiles.node_words import NodeWords
from ninfer_core.schemes.profiles.tiles import apart, cut
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.structs.leaves import LEAVES

if TYPE_CHECKING:
    from ninfer_core.schemes.functions.build import Builder, Tensor

_LOG_BITS = 8  # a level for each code


class NodeEncoder:
    """Fills words by path; FLOAT of a level is [*batch, *shape], `batch` being the counts around it.

    Raises: CannotEncode, whose message says what no operators or no rule can say.
    """

    def __init__(self, builder: "Builder") -> None:
        self.words: dict[str, Tensor] = {}
        self._build = builder
        self._to = NodeWords(builder)

    def level(self, quantization: Quantization, x: "Tensor", shape: Shape, batch: Shape, path: str) -> None:
        """The words of one level and of those below."""
        for rotation, post in ((quantization.post_rotation, True), (quantization.pre_rotation, False)):
            if rotation is not None:
                x = self._unrotated(x, rotation, post, (*batch, *shape))
        kind, at, count = quantization.kind, f"{path}." if path else "", math.prod(shape)
        match kind:
            case Linear():
                self._linear(kind, x, shape, batch, at)
            case Codebook():
                flat = self._build.reshape(x, *batch, count)
                codebook(self._to, self.words, kind, flat, count, batch, at)
            case FloatingPoint():
                floating_point(self._to, self.words, kind, x, shape, batch, path)
            case Sparse():
                self._sparse(kind, x, shape, batch, path)
            case Log():
                self._log(kind, self._build.reshape(x, *batch, count), count, batch, at)
            case Tiling():
                self._tiling(kind, x, shape, batch, path)
            case Cast():
                self._cast(kind, x, shape, batch, path)
            case StructuredBlock():
                structured_block(self._to, self.words, kind, x, shape, batch, at)
            case Function():
                raise CannotEncode(f"only {kind.quantize_op} knows how to encode")

    def _put(self, name: str, codes: "Tensor", leaf: str, bits: int, dims: Shape, batch: Shape) -> None:
        """Codes as leaves of their width, else as streams for each of `batch`."""
        if LEAVES[leaf].bits != bits:
            count = math.prod(dims)
            flat = self._build.reshape(codes, *batch, count)
            self.words[name] = stream(self._build, flat, bits, count, batch)
        else:
            self.words[name] = self._build.reshape(codes, *batch, *dims)

    def _linear(self, kind: Linear, x: "Tensor", shape: Shape, batch: Shape, at: str) -> None:
        build, leaf = self._build, leaf_of(kind)
        if isinstance(kind.zero_point, ZeroField):
            raise CannotEncode("no rule says how a stored zero point is chosen")
        zero = np.asarray(kind.zero_point, np.float64)
        if isinstance(kind.zero_point, tuple):
            zero = zero.reshape([-1 if axis == kind.axis else 1 for axis in range(len(shape))])
        scaled = self._to.over_constants(x, constant_scale(kind.scale, shape, kind.axis))
        if LEAVES[leaf].kind == "float" and LEAVES[leaf].bits == kind.bits:
            moved = build.add(build.cast(scaled, "DOUBLE"), build.constant(zero, "DOUBLE"))
            codes = self._to.floats(build.cast(moved, "FLOAT"), (*batch, *shape), leaf)
        else:
            codes = self._to.integers(scaled, (*batch, *shape), zero, leaf, kind.bits)
        self._put(f"{at}values", codes, leaf, kind.bits, shape if batch else (math.prod(shape),), batch)

    def _sparse(self, kind: Sparse, x: "Tensor", shape: Shape, batch: Shape, path: str) -> None:
        build, to = self._build, self._to
        if batch:
            raise CannotEncode("outliers of a repeated structure have no place")
        flat = build.reshape(x, math.prod(shape))
        above = to.compared("Greater", build.op("Abs", flat), build.constant(kind.outlier_threshold, "FLOAT"))
        # As many as the type holds, or the function stops: the shape would be another one.
        found = build.reshape(build.op("NonZero", above, element="INT64"), kind.outliers)
        at = (f"{path}." if path else "") + ("outlier_" if kind.prefixed else "")
        self.words[f"{at}indices"] = build.bit_cast(found, "UINT64")
        held = build.gather(flat, found)
        self.words[f"{at}values"] = to.floats(held, (kind.outliers,), kind.outlier_data_type)
        base = build.where(above, build.constant(0.0, "FLOAT"), flat)
        inner = f"{path}.base" if path else "base"
        self.level(kind.base, build.reshape(base, *shape), shape, (), inner)

    def _log(self, kind: Log, x: "Tensor", count: int, batch: Shape, at: str) -> None:
        build, to, shape = self._build, self._to, (*batch, count)
        if kind.bits > _LOG_BITS:
            raise CannotEncode(f"a level for each of more than {1 << _LOG_BITS} codes makes no sense")
        x = to.finite(x, shape)
        negative = to.compared("Less", x, 0.0)
        if not kind.has_sign:
            x = to.only(x, shape, negative)
        codes = to.reached(to.magnitude(x), log_levels(kind))
        if kind.base < 1:
            codes = build.subtract(build.constant((1 << kind.bits) - 1, "INT64"), codes)
        leaf = f"UINT{kind.bits}" if kind.bits in (2, 4, 8, 16) else "UINT8"
        self._put(f"{at}codes", codes, leaf, kind.bits, (count,), batch)
        if kind.has_sign:  # zero is positive (R13)
            self.words[f"{at}signs"] = stream(build, build.cast(negative, "UINT8"), 1, count, batch)

    def _cast(self, kind: Cast, x: "Tensor", shape: Shape, batch: Shape, path: str) -> None:
        build = self._build
        if kind.storage_type == "FLOAT16":
            raise CannotEncode("which FLOAT16 a NaN becomes is a runtime's choice")
        words = self._to.floats(x, (*batch, *shape), kind.storage_type)
        if not path:
            count, unit = math.prod(shape), 8 // math.gcd(8, LEAVES[kind.storage_type].bits)
            words = self._padded(build.reshape(words, count), (count,), (-(-count // unit) * unit,), ())
        self.words[path] = words

    def _padded(self, x: "Tensor", shape: Shape, whole: Shape, batch: Shape) -> "Tensor":
        if shape == whole:
            return x
        missing = [size - held for size, held in zip(whole, shape, strict=True)]
        pads = [*([0] * (len(batch) + len(shape))), *([0] * len(batch)), *missing]
        zero = self._build.constant(0, x.element)
        return self._build.op("Pad", x, self._build.constant(pads, "INT64"), zero)

    def _tiling(self, kind: Tiling, x: "Tensor", shape: Shape, batch: Shape, path: str) -> None:
        build, tiles, rank = self._build, cut(kind, shape), len(batch)
        if not kind.axes:
            count, held = math.prod(shape), tiles.count * tiles.tile[0]
            x = self._padded(build.reshape(x, *batch, count), (count,), (held,), batch)
        else:
            whole, split, order = apart(tiles, rank)
            x = build.reshape(self._padded(x, shape, whole, batch), *batch, *split)
            x = build.transpose(x, *order)
        if kind.stacked:
            self._stacked(kind, build.reshape(x, *batch, tiles.count, *tiles.tile), batch, path)
            return
        at = f"{path}." if path else ""
        if len(kind.elem_quant) == 1:
            inner = build.reshape(x, *batch, *tiles.dims, *tiles.tile)
            around = (*batch, *tiles.dims)
            self.level(kind.elem_quant[0], inner, tiles.tile, around, f"{at}{kind.field}")
            return
        listed, start = build.reshape(x, *batch, tiles.count, *tiles.tile), 0
        for number, (index, count) in enumerate(runs(tiles.count, len(kind.elem_quant))):
            part = build.cut(listed, rank, start, start + count)
            inner_path = f"{at}{kind.field}_{number}"
            self.level(kind.elem_quant[index], part, tiles.tile, (*batch, count), inner_path)
            start += count

    def _stacked(self, kind: Tiling, x: "Tensor", batch: Shape, path: str) -> None:
        linear = [element.kind for element in kind.elem_quant if isinstance(element.kind, Linear)]
        scales = np.asarray([item.scale.value for item in linear if isinstance(item.scale, ScaleFloat)])
        zeros = np.asarray([item.zero_point for item in linear], np.float64)[:, None]
        first, leaf, size = linear[0], leaf_of(linear[0]), kind.tile_shape[0]
        around = (*batch, len(linear))
        scaled = self._to.over_constants(x, scales.astype(np.float32)[:, None])
        codes = self._to.integers(scaled, (*around, size), zeros, leaf, first.bits)
        self._put(f"{path}.values" if path else "values", codes, leaf, first.bits, (size,), around)

    def _unrotated(self, x: "Tensor", rotation: Rotation, post: bool, shape: Shape) -> "Tensor":
        """What is stored of a tensor whose decoding ends with this rotation."""
        full = len(rotation.dims) == 2
        if rotation.matrix_type == "HADAMARD":
            axis = -2 if post and full else -1
            return NodeOps(self._build, {}).hadamard(x, rotation.dims[0], axis, shape)
        if full:
            raise CannotEncode("the inverse of a full matrix is not part of the profile")
        matrix = np.asarray(rotation.matrix, np.float32)
        if post:
            return self._to.over_constants(x, matrix)
        return self._build.multiply(x, self._build.constant(matrix, "FLOAT"))


def log_levels(kind: Log) -> list[int]:
    """The first binary32 word of each code above the lowest, in the order of magnitudes, as the encoder of arrays says.

    Bisection over all words: nothing is computed here that was not computed there.
    """
    steps = (1 << kind.bits) - 1
    wanted = np.arange(1, steps + 1)
    low, high = np.zeros(steps, np.int64), np.full(steps, 0x7F800000, np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        codes = log_codes(kind, middle.astype(np.uint32).view(np.float32))
        passed = (codes if kind.base > 1 else steps - codes) >= wanted
        high = np.where(passed, middle, high)
        low = np.where(passed, low, np.minimum(middle + 1, high))
    levels: list[int] = high.tolist()
    return levels
