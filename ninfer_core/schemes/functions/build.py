"""Functions of standard ONNX operators, put together node by node with every input and output typed (struct types 6).

Integers are taken apart with BitShift and BitwiseAnd, which every runtime has for all unsigned widths; arithmetic
happens after a cast to INT32 or FLOAT. Shapes are written out, so that a function is read without running it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

OPSET: Final = 25  # the first whose Cast takes every integer leaf, UINT2 and INT2 included
BIT_CASTS: Final = 26  # the first with BitCast, for functions that take floats apart
_NATIVE: Final[Mapping[str, type[np.generic]]] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FLOAT16": np.float16,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}


@dataclass(frozen=True, slots=True)
class Typed:
    """An input or an output of a function: a name, the name of an element type, and its shape.

    A dimension given by name stands for a count that the value decides.
    """

    name: str
    element: str
    shape: tuple[int | str, ...] = ()

    @property
    def info(self) -> onnx.ValueInfoProto:
        """The ValueInfo that types it."""
        return helper.make_tensor_value_info(
            self.name, onnx.TensorProto.DataType.Value(self.element), list(self.shape)
        )


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value inside of a function: its name there, and the name of its element type."""

    name: str
    element: str


class Builder:
    """Collects the nodes of one function of the standard domain.

    `inputs` are its tensors in canonical order. Equal constants become one node.
    """

    def __init__(self, name: str, inputs: Sequence[Typed], opset: int = OPSET) -> None:
        self._name = name
        self._opset = opset
        self._typed = tuple(inputs)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}
        self._taken = {item.name for item in inputs}
        if len(self._taken) != len(self._typed):
            raise ValueError(f"{name}: two inputs have one name")
        self.inputs = tuple(Tensor(item.name, item.element) for item in inputs)

    def op(self, kind: str, *inputs: Tensor, element: str = "", **attributes: Any) -> Tensor:
        """One node with one output, of the first input's type unless `element` names another."""
        made = Tensor(self._fresh(kind.lower()), element or inputs[0].element)
        names = [item.name for item in inputs]
        self._nodes.append(helper.make_node(kind, names, [made.name], **attributes))
        return made

    def constant(self, values: object, element: str) -> Tensor:
        """A Constant node; for the numbers of the algorithm, not for tables, which are constant leaves."""
        array = np.asarray(values, _NATIVE[element])
        key = (element, array.shape, array.tobytes())
        if key not in self._constants:
            made = Tensor(self._fresh("k"), element)
            tensor = helper.make_tensor(
                "", onnx.TensorProto.DataType.Value(element), array.shape, array.ravel().tolist()
            )
            self._nodes.append(helper.make_node("Constant", [], [made.name], value=tensor))
            self._constants[key] = made
        return self._constants[key]

    def finish(self, output: Tensor, shape: Sequence[int | str], name: str = "values") -> onnx.FunctionProto:
        """The function whose one output is `output`, named `name` and typed with `shape`."""
        while name in self._taken:
            name += "_"
        self._nodes.append(helper.make_node("Identity", [output.name], [name]))
        typed = (*self._typed, Typed(name, output.element, tuple(shape)))
        return helper.make_function(
            "",
            self._name,
            [item.name for item in self._typed],
            [name],
            self._nodes,
            [helper.make_opsetid("", self._opset)],
            value_info=[item.info for item in typed],
        )

    def cast(self, x: Tensor, element: str) -> Tensor:
        """Nothing where `x` is of that type already."""
        if x.element == element:
            return x
        return self.op("Cast", x, element=element, to=onnx.TensorProto.DataType.Value(element))

    def bit_cast(self, x: Tensor, element: str) -> Tensor:
        """The bits of `x` as another type of its width; needs opset 26."""
        return self.op("BitCast", x, element=element, to=onnx.TensorProto.DataType.Value(element))

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        """The same elements in another shape; one dimension may be -1, and a 0 is an empty one."""
        return self.op("Reshape", x, self.constant(shape, "INT64"), allowzero=1)

    def transpose(self, x: Tensor, *perm: int) -> Tensor:
        """Axis `perm[i]` of `x` becomes axis i."""
        return self.op("Transpose", x, perm=list(perm))

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """The parts one after another along `axis`."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def cut(self, x: Tensor, axis: int, start: int, stop: int) -> Tensor:
        """The indices `start` to `stop` - 1 along `axis`."""
        bounds = (self.constant([bound], "INT64") for bound in (start, stop, axis))
        return self.op("Slice", x, *bounds)

    def expand(self, x: Tensor, *shape: int) -> Tensor:
        """`x` repeated along its dimensions of size one."""
        return self.op("Expand", x, self.constant(shape, "INT64"))

    def gather(self, table: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
        """`table[indices]` along `axis`; the indices may have any integer type."""
        if indices.element not in ("INT32", "INT64"):
            indices = self.cast(indices, "INT64" if indices.element in ("UINT32", "UINT64") else "INT32")
        return self.op("Gather", table, indices, axis=axis)

    def right(self, x: Tensor, by: Tensor | int | Sequence[int]) -> Tensor:
        """Bits shifted down; a sequence shifts along the last axis."""
        return self.op("BitShift", x, self._like(x, by), direction="RIGHT")

    def left(self, x: Tensor, by: Tensor | int | Sequence[int]) -> Tensor:
        """Bits shifted up and out at the top."""
        return self.op("BitShift", x, self._like(x, by), direction="LEFT")

    def mask(self, x: Tensor, bits: Tensor | int | Sequence[int]) -> Tensor:
        """The bits of `x` that are set in `bits`."""
        return self.op("BitwiseAnd", x, self._like(x, bits))

    def either(self, x: Tensor, y: Tensor) -> Tensor:
        """The bits that are set in one of the two."""
        return self.op("BitwiseOr", x, y)

    def field(self, x: Tensor, low: int | Sequence[int], width: int) -> Tensor:
        """The integer in bits `low` to `low + width - 1` of an unsigned tensor; a sequence of `low` runs along the last axis."""
        shifted = x if low == 0 else self.right(x, low)
        return self.mask(shifted, (1 << width) - 1)

    def fields(self, x: Tensor, lows: Sequence[int], width: int, shape: Sequence[int]) -> Tensor:
        """`field` for each of `lows` along a new last axis of `x`, whose shape is `shape` before."""
        return self.field(self.reshape(x, *shape, 1), lows, width)

    def add(self, x: Tensor, y: Tensor | float) -> Tensor:
        """x + y."""
        return self.op("Add", x, self._like(x, y))

    def subtract(self, x: Tensor, y: Tensor | float) -> Tensor:
        """x - y."""
        return self.op("Sub", x, self._like(x, y))

    def multiply(self, x: Tensor, y: Tensor | float) -> Tensor:
        """x * y, rounded once in floating point."""
        return self.op("Mul", x, self._like(x, y))

    def divide(self, x: Tensor, y: Tensor | float) -> Tensor:
        """x / y, rounded once in floating point, toward zero for integers."""
        return self.op("Div", x, self._like(x, y))

    def equal(self, x: Tensor, y: Tensor | float) -> Tensor:
        """BOOL, true where the two are equal numbers."""
        return self.op("Equal", x, self._like(x, y), element="BOOL")

    def where(self, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
        """`yes` where the condition holds, `no` elsewhere."""
        return self.op("Where", condition, yes, no, element=yes.element)

    def stream(self, data: Tensor, bits: int, count: int, outer: Sequence[int], words: int) -> Tensor:
        """`count` codes of `bits` each from a low-bits-first stream (scheme rule R1): [*outer, count] unsigned.

        `data` is unsigned, [*outer, words]; each row of words is a stream of its own. Bits left over are ignored.
        """
        carrier = int(data.element.removeprefix("UINT"))
        if bits > carrier or count * bits > words * carrier:
            raise ValueError(f"{count} codes of {bits} bits do not fit into {words} x {data.element}")
        if carrier % bits == 0:
            per_word = carrier // bits
            spread = self.fields(data, range(0, carrier, bits), bits, (*outer, words))
            flat = self.reshape(spread, *outer, words * per_word)
            return flat if count == words * per_word else self.cut(flat, len(outer), 0, count)
        # Codes cross the words here: each row becomes its single bits, and those of a code are summed at their places.
        single = self.reshape(self.fields(data, range(carrier), 1, (*outer, words)), *outer, words * carrier)
        used = self.cut(single, len(outer), 0, count * bits)
        places = self.left(self.reshape(used, *outer, count, bits), range(bits))
        summed = self.cast(places, "INT32")
        axes = self.constant([-1], "INT64")
        return self.cast(self.op("ReduceSum", summed, axes, keepdims=0), data.element)

    def digits(self, data: Tensor, base: int, count: int, outer: Sequence[int]) -> Tensor:
        """`count` base-`base` digits of each unsigned integer, the least significant first: [*outer, count] INT32 (R2).

        `data` is UINT8 or UINT16, [*outer].
        """
        powers = self.constant([base**place for place in range(count)], "INT32")
        column = self.reshape(self.cast(data, "INT32"), *outer, 1)
        return self.op("Mod", self.op("Div", column, powers), self.constant(base, "INT32"))

    def _like(self, x: Tensor, y: object) -> Tensor:
        return (
            y if isinstance(y, Tensor) else self.constant(list(y) if isinstance(y, range) else y, x.element)
        )

    def _fresh(self, stem: str) -> str:
        number = len(self._nodes)
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"


def names_of(paths: Sequence[str]) -> tuple[str, ...]:
    """Input names for leaf paths: plain identifiers of the text form, unique, close to the paths."""
    names: list[str] = []
    for path in paths:
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in path).strip("_") or "payload"
        if plain[0].isdigit():
            plain = f"x{plain}"
        unique, number = plain, 2
        while unique in names:
            unique, number = f"{plain}_{number}", number + 1
        names.append(unique)
    return tuple(names)
