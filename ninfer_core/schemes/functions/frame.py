"""What the decoder of a form is written against: its leaves by name, and how many blocks, rows and values there are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import NinferError
from ninfer_core.schemes.form import Params, Shape
from ninfer_core.schemes.functions.build import Builder, Tensor

Given = Mapping[str, str]  # the parts that are there, and the names of their numpy types
Tables = Callable[[Params, Given], Mapping[str, NDArray[Any]]]
LeafTypes = Callable[[Params], Mapping[str, str]]


def _no_tables(_params: Params, _given: Given) -> Mapping[str, NDArray[Any]]:
    return {}


def _as_stored(_params: Params) -> Mapping[str, str]:
    return {}


class NotDecodable(NinferError):
    """Parts that make a struct type and no numbers: one is left out, or of a type that the parameters contradict."""

    code = "not_decodable"


@dataclass(frozen=True, slots=True)
class Frame:
    """One decoder in the making. Names are the last ones of the leaves' paths."""

    build: Builder
    leaves: Mapping[str, Tensor]
    shapes: Mapping[str, tuple[int, ...]]
    shape: Shape
    params: Params

    def __contains__(self, name: str) -> bool:
        return name in self.leaves

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.leaves:
            raise NotDecodable(f"there is no {name}")
        return self.leaves[name]

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of a leaf."""
        if name not in self.shapes:
            raise NotDecodable(f"there is no {name}")
        return self.shapes[name]

    def real(self, name: str) -> Tensor:
        """A leaf as FLOAT, exact."""
        return self.build.cast(self[name], "FLOAT")

    def real_as(self, name: str, *shape: int) -> Tensor:
        """The same in another shape, as for broadcasting."""
        return self.build.reshape(self.real(name), *shape)

    def unsigned(self, name: str) -> Tensor:
        """A leaf of signed words as the unsigned ones of the same bits."""
        tensor = self[name]
        return self.build.cast(tensor, f"U{tensor.element}") if tensor.element[0] == "I" else tensor

    def to_binary16(self, x: Tensor) -> Tensor:
        """FLOAT numbers rounded to binary16: of a sum or product of two such numbers, the one rounding that there is."""
        return self.build.cast(self.build.cast(x, "FLOAT16"), "FLOAT")

    def looked_up(self, table: str, indices: Tensor) -> Tensor:
        """Entries of a constant leaf as FLOAT."""
        return self.build.cast(self.build.gather(self[table], indices), "FLOAT")

    def repeated(self, x: Tensor, shape: Sequence[int], axis: int, each: int, length: int) -> Tensor:
        """`x` of `shape` with every index along `axis` repeated, then cut to `length`."""
        if shape[axis] * each < length:
            raise ValueError(f"{shape[axis]} x {each} do not reach {length}")
        if x.element == "BFLOAT16":  # which not every engine expands
            x = self.build.cast(x, "FLOAT")
        before, after = list(shape[:axis]), list(shape[axis + 1 :])
        apart = self.build.reshape(x, *before, shape[axis], 1, *after)
        wide = self.build.expand(apart, *before, shape[axis], each, *after)
        flat = self.build.reshape(wide, *before, shape[axis] * each, *after)
        return flat if shape[axis] * each == length else self.build.cut(flat, axis, 0, length)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a file form is decoded by standard operators.

    `tables` become constant fields of its struct type, as shared tables must; `types` are element types of parts whose
    arrays hold plain words; `parts` are optional ones that are there unless something else is said. The tensor that
    `decode` returns has the values in order, in any shape.
    """

    decode: Callable[[Frame], Tensor]
    tables: Tables = _no_tables
    types: LeafTypes = _as_stored
    parts: tuple[str, ...] = ()
    opset: int | None = None


def bare(table: NDArray[Any]) -> NDArray[Any]:
    """A table as its constant holds it: little-endian and contiguous."""
    return np.ascontiguousarray(table, dtype=table.dtype.newbyteorder("<"))
