"""What a profile's leaves mean, as steps on tensors: one function for each kind (scheme specification, section 6)."""

import math
from dataclasses import dataclass
from typing import Any, Generic

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.decode_blocks import structured_block
from ninfer_core.schemes.profiles.decode_floats import floating_point
from ninfer_core.schemes.profiles.decode_tiles import placed
from ninfer_core.schemes.profiles.faults import refusal
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
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
)
from ninfer_core.schemes.profiles.ops import Ops, T
from ninfer_core.schemes.profiles.pieces import stream_bytes
from ninfer_core.schemes.profiles.place import Place
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.structs.leaves import LEAVES


@dataclass(frozen=True, slots=True)
class Walk(Generic[T]):
    """A decoder being made of steps; every function gives FLOAT of shape [*batch, *shape]."""

    ops: Ops[T]

    def values(self, quantization: Quantization, shape: Shape, place: Place) -> T:
        """The numbers of one level. Raises: SchemeRefused for a kind whose numbers are not known here."""
        made = self._kind(quantization, shape, place)
        for rotation, name in (
            (quantization.pre_rotation, "pre_rotation"),
            (quantization.post_rotation, "post_rotation"),
        ):
            if rotation is not None:
                made = self._rotated(made, rotation, name, shape, place)
        return made

    def _kind(self, quantization: Quantization, shape: Shape, place: Place) -> T:
        kind = quantization.kind
        match kind:
            case Linear():
                return self._linear(kind, shape, place)
            case Codebook():
                return self._codebook(kind, shape, place)
            case FloatingPoint():
                return floating_point(self.ops, kind, shape, place)
            case Sparse():
                return self._sparse(kind, shape, place)
            case Log():
                return self._log(kind, shape, place)
            case Tiling():
                return self._stacked(kind, shape, place) if kind.stacked else self._tiling(kind, shape, place)
            case Cast():
                return self._cast(kind, shape, place)
            case StructuredBlock():
                return structured_block(self.ops, kind, shape, place)
            case Function():
                message = f"only {kind.dequantize_op} knows its numbers"
                raise refusal(
                    quantization.name, "decoder_absent", "dequantize_op", message, "", kind.dequantize_op
                )

    def _parameter(self, place: Place, name: str, dtype: str, value: Any) -> T:
        """A constant leaf, or a constant of the decoder where the type does not state it."""
        path = place.constant(name)
        if not self.ops.has(path):
            return self.ops.constant(value, dtype)
        return self.ops.number(path) if dtype == "FLOAT" else self.ops.stored(path)

    def _flat(self, x: T, count: int, place: Place) -> T:
        return self.ops.reshape(x, *place.batch, count)

    def _shaped(self, x: T, shape: Shape, place: Place) -> T:
        return self.ops.reshape(x, *place.batch, *shape)

    def _codes(self, name: str, leaf: str, bits: int, count: int, place: Place) -> T:
        """Integer codes [*batch, count]: leaves of their width, or a stream in bytes (R1, R4)."""
        x = self.ops.stored(place.leaf(name))
        if LEAVES[leaf].bits == bits:
            return self._flat(x, count, place)
        words = stream_bytes(count, bits)
        return self.ops.codes(x, bits, count, place.batch, words)

    def _scaled(self, x: T, scale: Scale | None, shape: Shape, axis: int, place: Place) -> T:
        """x [*batch, *shape] times its scale; none is 1 (R8)."""
        match scale:
            case None:
                return x
            case ScaleFloat(value=value):
                return self.ops.multiply(x, self._parameter(place, "scale", "FLOAT", value))
            case ScaleInt(exponent=exponent):
                stated = self.ops.cast(self._parameter(place, "scale", "INT32", exponent), "FLOAT")
                factor = self.ops.power(self.ops.constant(2.0, "FLOAT"), stated)
                return self.ops.multiply(x, factor)
            case ScaleVector(values=values):
                along = self._parameter(place, "scale", "FLOAT", values)
                return self.ops.multiply(x, self._along(along, shape, axis, ()))
            case ScaleField():
                stored = self.ops.number(place.leaf("scale"))
                return self.ops.multiply(x, self._along(stored, shape, axis, place.batch))

    def _along(self, x: T, shape: Shape, axis: int, batch: Shape) -> T:
        """Numbers for the indices of an axis, or one number, in dims that spread over [*batch, *shape]."""
        dims = [size if place == axis else 1 for place, size in enumerate(shape)]
        return self.ops.reshape(x, *batch, *dims)

    def _linear(self, kind: Linear, shape: Shape, place: Place) -> T:
        ops, count = self.ops, math.prod(shape)
        leaf = leaf_of(kind)
        native = LEAVES[leaf].bits == kind.bits
        if native and LEAVES[leaf].kind == "float":
            flat = self._flat(ops.number(place.leaf("values")), count, place)
        else:
            flat = ops.cast(self._codes("values", leaf, kind.bits, count, place), "FLOAT")
        x = self._shaped(flat, shape, place)
        if isinstance(kind.zero_point, ZeroField):
            stored = ops.number(place.leaf("zero_point"))
            zero = self._along(stored, shape, kind.axis, place.batch)
        else:
            zero = ops.cast(self._parameter(place, "zero_point", "INT64", kind.zero_point), "FLOAT")
        if isinstance(kind.zero_point, tuple):
            zero = self._along(zero, shape, kind.axis, ())
        return self._scaled(ops.subtract(x, zero), kind.scale, shape, kind.axis, place)

    def _stacked(self, kind: Tiling, shape: Shape, place: Place) -> T:
        ops, tiles = self.ops, cut(kind, shape)
        linear = [element.kind for element in kind.elem_quant if isinstance(element.kind, Linear)]
        first, inner = linear[0], Place(place.path, (*place.batch, tiles.count), place.first)
        codes = self._codes("values", leaf_of(first), first.bits, tiles.tile[0], inner)
        scales = tuple(item.scale.value for item in linear if isinstance(item.scale, ScaleFloat))
        zeros = ops.cast(
            self._parameter(place, "zero_points", "INT64", tuple(item.zero_point for item in linear)), "FLOAT"
        )
        factors = self._parameter(place, "scales", "FLOAT", scales)
        moved = ops.subtract(ops.cast(codes, "FLOAT"), ops.reshape(zeros, tiles.count, 1))
        made = ops.multiply(moved, ops.reshape(factors, tiles.count, 1))
        held, count = tiles.count * tiles.tile[0], math.prod(shape)
        flat = ops.reshape(made, *place.batch, held)
        return self._shaped(ops.cut(flat, len(place.batch), 0, count), shape, place)

    def _cast(self, kind: Cast, shape: Shape, place: Place) -> T:
        count = held = math.prod(shape)
        if not place.path:  # a bare root is padded to whole bytes by elements
            whole = 8 // math.gcd(8, LEAVES[kind.storage_type].bits)
            held = -(-count // whole) * whole
        flat = self.ops.reshape(self.ops.number(place.path), *place.batch, held)
        return self._shaped(self.ops.cut(flat, len(place.batch), 0, count), shape, place)

    def _codebook(self, kind: Codebook, shape: Shape, place: Place) -> T:
        ops, values = self.ops, math.prod(shape)
        vectors, path = values // kind.vector, place.leaf("indices")
        count, stored = vectors * kind.books, ops.stored(path)
        if kind.index_bits:
            words = stream_bytes(count, kind.index_bits)
            flat = ops.reshape(stored, *place.batch, words)
            indices = ops.codes(flat, kind.index_bits, count, place.batch, words)
        else:
            size, digits = kind.packed_bytes or 1, kind.packed_count or 1
            units = -(-count // digits)
            outer = (*place.batch, units)
            spread = ops.digits(ops.reshape(stored, *outer, size), kind.entries, digits, outer, size)
            joined = ops.reshape(spread, *place.batch, units * digits)
            indices = ops.cut(joined, len(place.batch), 0, count)
        name = "codebooks" if kind.books > 1 else "codebook"
        table = self._parameter(place, name, "FLOAT", kind.codebook_data)
        books = ops.reshape(table, kind.books, kind.entries, kind.vector)
        by_book = ops.reshape(indices, *place.batch, vectors, kind.books)
        rank, made = len(place.batch), None
        for book in range(kind.books):  # in order: a sum of binary32 numbers is one of its order
            entries = ops.reshape(ops.cut(books, 0, book, book + 1), kind.entries, kind.vector)
            picks = ops.reshape(ops.cut(by_book, rank + 1, book, book + 1), *place.batch, vectors)
            part = ops.look_up(entries, picks, kind.entries, path)
            made = part if made is None else ops.add(made, part)
        if made is None:
            raise ValueError("a codebook profile has a codebook")
        return self._scaled(self._shaped(made, shape, place), kind.scale, shape, -1, place)

    def _sparse(self, kind: Sparse, shape: Shape, place: Place) -> T:
        ops, count = self.ops, math.prod(shape)
        if place.batch:
            raise refusal("sparse", "structure_unknown", "", "outliers of a repeated structure", "one tensor")
        base = self.values(kind.base, shape, place.below("base"))
        prefix = "outlier_" if kind.prefixed else ""
        path = place.leaf(f"{prefix}indices")
        held = ops.number(place.leaf(f"{prefix}values"))
        flat = ops.replace(ops.reshape(base, count), ops.stored(path), held, count, path)
        return ops.reshape(flat, *shape)

    def _log(self, kind: Log, shape: Shape, place: Place) -> T:
        ops, count = self.ops, math.prod(shape)
        leaf = f"UINT{kind.bits}" if kind.bits in (2, 4, 8, 16) else "UINT8"
        codes = ops.cast(self._codes("codes", leaf, kind.bits, count, place), "FLOAT")
        exponents = ops.add(codes, self._parameter(place, "offset", "FLOAT", kind.offset))
        made = ops.power(self._parameter(place, "base", "FLOAT", kind.base), exponents)
        if kind.has_sign:
            signs = ops.cast(self._codes("signs", "UINT8", 1, count, place), "FLOAT")
            twice = ops.multiply(signs, ops.constant(2.0, "FLOAT"))
            made = ops.multiply(made, ops.subtract(ops.constant(1.0, "FLOAT"), twice))
        return self._shaped(made, shape, place)

    def _tiling(self, kind: Tiling, shape: Shape, place: Place) -> T:
        ops, tiles, rank = self.ops, cut(kind, shape), len(place.batch)
        parts = []
        if len(kind.elem_quant) == 1:
            inner = place.below(kind.field, *tiles.dims)
            parts.append(self.values(kind.elem_quant[0], tiles.tile, inner))
        else:
            for number, (index, count) in enumerate(runs(tiles.count, len(kind.elem_quant))):
                inner = place.below(f"{kind.field}_{number}", count)
                parts.append(self.values(kind.elem_quant[index], tiles.tile, inner))
        stacked = parts[0] if len(parts) == 1 else ops.concat(parts, rank)
        if not kind.axes:
            held = tiles.count * tiles.tile[0]
            flat = ops.reshape(stacked, *place.batch, held)
            count = math.prod(shape)
            whole = flat if count == held else ops.cut(flat, rank, 0, count)
            return self._shaped(whole, shape, place)
        return placed(ops, stacked, tiles, shape, place.batch)

    def _rotated(self, x: T, rotation: Rotation, name: str, shape: Shape, place: Place) -> T:
        """R11: result = post x decoded x pre; smoothing factors are divided out."""
        ops, post, full = self.ops, name == "post_rotation", len(rotation.dims) == 2
        axis = -2 if post and full else -1
        if rotation.matrix_type == "HADAMARD":
            return ops.hadamard(x, rotation.dims[0], axis, (*place.batch, *shape))
        matrix = ops.reshape(self._parameter(place, name, "FLOAT", rotation.matrix), *rotation.dims)
        if full:
            return ops.matmul(matrix, x) if post else ops.matmul(x, matrix)
        return ops.multiply(x, matrix) if post else ops.divide(x, matrix)
