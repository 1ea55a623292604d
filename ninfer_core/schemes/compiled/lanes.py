"""Vectors of fixed length inside of kernels: whether a loop of sixteen turns becomes one is otherwise a guess.

A compiler makes a vector of such a loop only behind tests that its arrays do not overlap, and those cost what a block
does. Lanes are held in whatever registers the processor has; an operation is that of numbers, lane by lane, on lanes of
one kind or on lanes and a number for all of them. No place is checked: it lies in a block by the layout of its type.
"""

import operator
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

_KINDS: Final = {
    types.uint8: ir.IntType(8),
    types.int32: ir.IntType(32),
    types.float32: ir.FloatType(),
}


class Lanes(types.Type):  # type: ignore[misc]
    """`count` elements of a scalar type."""

    def __init__(self, scalar: Any, count: int) -> None:
        """A type for each scalar and count."""
        self.scalar, self.count = scalar, count
        super().__init__(f"lanes({scalar}, {count})")

    @property
    def vector(self) -> Any:
        """What the compiler holds it in."""
        return ir.VectorType(_KINDS[self.scalar], self.count)


@register_model(Lanes)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, lanes.vector)


def _pointer(context: Any, builder: Any, kinds: Any, arguments: Any, lanes: Lanes) -> Any:
    """Where lanes lie, in an array from a place on."""
    data = context.make_array(kinds[0])(context, builder, arguments[0]).data
    place = context.cast(builder, arguments[1], kinds[1], types.intp)
    return builder.bitcast(builder.gep(data, [place]), lanes.vector.as_pointer())


def _reading(count: int) -> Any:
    def read(_typing: Any, array: Any, place: Any) -> Any:
        lanes = Lanes(types.uint8, count)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(context, builder, signature.args, arguments, lanes)
            return builder.load(pointer, align=1)

        return lanes(array, place), generate

    return intrinsic(read)


def _converting(scalar: Any, convert: Callable[[Any, Any, Any], Any]) -> Any:
    def converted(_typing: Any, lanes: Any) -> Any:
        other = Lanes(scalar, lanes.count)

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return convert(builder, arguments[0], other.vector)

        return other(lanes), generate

    return intrinsic(converted)


bytes4, bytes16, bytes32 = _reading(4), _reading(16), _reading(32)
"""(array of bytes, place) -> that many of them from there on."""
unsigned = _converting(types.int32, lambda builder, lanes, to: builder.zext(lanes, to))
signed = _converting(types.int32, lambda builder, lanes, to: builder.sext(lanes, to))
"""Bytes -> integers of 32 bits, as numbers from 0 to 255 or as those from -128 to 127."""
numbers = _converting(types.float32, lambda builder, lanes, to: builder.sitofp(lanes, to))
"""Integers of 32 bits -> binary32."""


@intrinsic  # type: ignore[untyped-decorator]
def bits16(_typing: Any, word: Any) -> Any:
    """The sixteen lowest bits of an integer, lowest first, as bytes of 0 and 1."""
    lanes = Lanes(types.uint8, 16)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single = context.cast(builder, arguments[0], signature.args[0], types.uint16)
        places = ir.Constant(ir.VectorType(ir.IntType(16), 16), list(range(16)))
        shifted = builder.lshr(_splat(builder, single, places.type), places)
        ones = builder.trunc(shifted, ir.VectorType(ir.IntType(1), 16))
        return builder.zext(ones, lanes.vector)

    return lanes(word), generate


@intrinsic  # type: ignore[untyped-decorator]
def put(_typing: Any, array: Any, place: Any, lanes: Any) -> Any:
    """(array of binary32, place, lanes): store them from there on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args, arguments, signature.args[2])
        builder.store(arguments[2], pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, place, lanes), generate


def _splat(builder: Any, number: Any, vector: Any) -> Any:
    index, nothing = ir.IntType(32), ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, number, index(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(index, vector.count), None))


def _operating(symbol: Any, integers: str, floats: str | None = None) -> None:
    """Let lanes take an operator: how it is called on integers, which wrap, and on binary32."""

    @intrinsic  # type: ignore[untyped-decorator]
    def operate(_typing: Any, left: Any, right: Any) -> Any:
        lanes = left if isinstance(left, Lanes) else right
        name = floats if lanes.scalar == types.float32 else integers
        if name is None:
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            operands = [
                value
                if isinstance(kind, Lanes)
                else _splat(builder, context.cast(builder, value, kind, lanes.scalar), lanes.vector)
                for kind, value in zip(signature.args, arguments, strict=True)
            ]
            return getattr(builder, name)(*operands)

        return lanes(left, right), generate

    @overload(symbol, jit_options={"forceinline": True})  # type: ignore[untyped-decorator]
    def _chosen(left: Any, right: Any) -> Any:
        def taken(left: Any, right: Any) -> Any:
            return operate(left, right)

        return taken if isinstance(left, Lanes) or isinstance(right, Lanes) else None


for _symbol, *_names in (
    (operator.mul, "mul", "fmul"),
    (operator.add, "add", "fadd"),
    (operator.sub, "sub", "fsub"),
    (operator.and_, "and_"),
    (operator.or_, "or_"),
    (operator.rshift, "lshr"),
    (operator.lshift, "shl"),
):
    _operating(_symbol, *_names)
