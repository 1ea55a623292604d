"""The steps of decoders as nodes of an ONNX function; what each means is said by the protocol."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.hadamard import factor

if TYPE_CHECKING:
    from ninfer_core.schemes.functions.build import Builder, Tensor

_INT32_LIMIT: Final = 1 << 31
_BYTES: Final = {"UINT2": "UINT8", "UINT4": "UINT8", "INT2": "INT8", "INT4": "INT8"}


class NodeOps:
    """The steps written down; `inputs` are the leaves by path."""

    def __init__(self, builder: "Builder", inputs: Mapping[str, "Tensor"]) -> None:
        self._build = builder
        self._inputs = inputs

    def has(self, path: str) -> bool:
        """Whether there is such a leaf."""
        return path in self._inputs

    def number(self, path: str) -> "Tensor":
        """A leaf as FLOAT."""
        return self._build.cast(self._inputs[path], "FLOAT")

    def stored(self, path: str) -> "Tensor":
        """A leaf of integers; of less than a byte it becomes a byte at once, since runtimes do little else with it."""
        leaf = self._inputs[path]
        return self._build.cast(leaf, _BYTES.get(leaf.element, leaf.element))

    def constant(self, values: object, element: str) -> "Tensor":
        """A Constant node."""
        return self._build.constant(values, element)

    def cast(self, x: "Tensor", element: str) -> "Tensor":
        """Cast."""
        return self._build.cast(x, element)

    def reshape(self, x: "Tensor", *shape: int) -> "Tensor":
        """Reshape."""
        return self._build.reshape(x, *shape)

    def transpose(self, x: "Tensor", *perm: int) -> "Tensor":
        """Transpose."""
        return self._build.transpose(x, *perm)

    def concat(self, parts: Sequence["Tensor"], axis: int) -> "Tensor":
        """Concat."""
        return self._build.concat(parts, axis)

    def cut(self, x: "Tensor", axis: int, start: int, stop: int) -> "Tensor":
        """Slice."""
        return self._build.cut(x, axis, start, stop)

    def add(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """Add."""
        return self._build.add(x, y)

    def subtract(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """Sub."""
        return self._build.subtract(x, y)

    def multiply(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """Mul."""
        return self._build.multiply(x, y)

    def divide(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """Div."""
        return self._build.divide(x, y)

    def power(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """Pow of DOUBLE between two casts."""
        wide = self._build.op("Pow", self.cast(x, "DOUBLE"), self.cast(y, "DOUBLE"))
        return self.cast(wide, "FLOAT")

    def equal(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """Equal."""
        return self._build.equal(x, y)

    def where(self, condition: "Tensor", yes: "Tensor", no: "Tensor") -> "Tensor":
        """Where."""
        return self._build.where(condition, yes, no)

    def matmul(self, x: "Tensor", y: "Tensor") -> "Tensor":
        """MatMul."""
        return self._build.op("MatMul", x, y)

    def field(self, x: "Tensor", low: int, width: int) -> "Tensor":
        """BitShift and BitwiseAnd."""
        return self._build.field(x, low, width)

    def codes(self, x: "Tensor", bits: int, count: int, outer: Shape, words: int) -> "Tensor":
        """Codes of streams."""
        if count == 0:
            return self.reshape(self.cut(self.reshape(x, *outer, words), len(outer), 0, 0), *outer, 0)
        if bits <= 8 or int(x.element.removeprefix("UINT")) >= bits:
            return self._build.stream(x, bits, count, outer, words)
        # A code is wider than a word: its bits are gathered in a wider type.
        single = self._build.fields(x, range(8), 1, (*outer, words))
        flat = self.cast(self.reshape(single, *outer, words * 8), "UINT32")
        used = self.reshape(self.cut(flat, len(outer), 0, count * bits), *outer, count, bits)
        placed = self.cast(self._build.left(used, range(bits)), "INT32")
        axes = self.constant([-1], "INT64")
        return self._build.op("ReduceSum", placed, axes, keepdims=0)

    def digits(self, x: "Tensor", base: int, count: int, outer: Shape, size: int) -> "Tensor":
        """Division and remainder: of single bytes at once, of wider units byte by byte from the top."""
        if size == 1 and base ** (count - 1) < _INT32_LIMIT:
            return self._build.digits(self.reshape(x, *outer), base, count, outer)
        rank = len(outer)
        wide = self.cast(x, "INT64")
        rest = [self.cut(wide, rank, place, place + 1) for place in range(size)]
        divisor, shift = self.constant(base, "INT64"), self.constant(256, "INT64")
        found = []
        for _ in range(count):
            carry = self.constant(0, "INT64")
            for place in reversed(range(size)):
                joined = self.add(self.multiply(carry, shift), rest[place])
                rest[place] = self.divide(joined, divisor)
                carry = self._build.op("Mod", joined, divisor)
            found.append(carry)
        return self.concat(found, rank)

    def look_up(
        self, table: "Tensor", indices: "Tensor", entries: int, path: str, signed: bool = False
    ) -> "Tensor":
        """Gather; a negative index, which would count from the end, becomes one that Gather refuses."""
        if signed:
            negative = self._build.op("Less", indices, self.constant(0, indices.element), element="BOOL")
            indices = self.where(negative, self.constant(entries, indices.element), indices)
        return self._build.gather(table, indices)

    def replace(self, flat: "Tensor", indices: "Tensor", values: "Tensor", count: int, path: str) -> "Tensor":
        """ScatterElements; negative indices become ones that it refuses."""
        negative = self._build.op("Less", indices, self.constant(0, "INT64"), element="BOOL")
        legal = self.where(negative, self.constant(count, "INT64"), indices)
        return self._build.op("ScatterElements", flat, legal, values, axis=0)

    def hadamard(self, x: "Tensor", size: int, axis: int, shape: Shape) -> "Tensor":
        """Sums and differences of neighbours 1, 2, 4 .. apart, one product last, as `hadamard.transform` does."""
        rank, turned = len(shape), list(shape)
        perm = list(range(rank))
        if axis == -2:
            perm[-1], perm[-2] = perm[-2], perm[-1]
            turned[-1], turned[-2] = turned[-2], turned[-1]
            x = self.transpose(x, *perm)
        lead, half = turned[:-1], 1
        while half < size:
            pairs = self.reshape(x, *lead, size // (2 * half), 2, half)
            low, high = self.cut(pairs, rank, 0, 1), self.cut(pairs, rank, 1, 2)
            x = self.concat([self.add(low, high), self.subtract(low, high)], rank)
            half *= 2
        x = self.multiply(self.reshape(x, *turned), self.constant(factor(size), "FLOAT"))
        return self.transpose(x, *perm) if axis == -2 else x
