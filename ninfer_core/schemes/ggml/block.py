"""What a GGML block type is: fields in their order, from which its size, its record and its struct type follow.

A GGUF tensor is rows of whole blocks along its fastest dimension, the input features (scheme specification, section 4).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.form import Values
from ninfer_core.schemes.structs.model import Array, Declaration, Declared, Field, Leaf, Structure, Type

Blocks = NDArray[np.void]  # [n] records of a block type, with its fields by name
DecodeBlocks = Callable[[Blocks], Values]  # [n] records to [n, values]
EncodeBlocks = Callable[[Values, Blocks], None]  # finite [n, values] into the fields of [n] zeroed records
BlockRule = Callable[[Blocks, Findings], None]

# Floats are read as words: what a NaN or a sign means is the decoder's to say, not numpy's.
_WORDS: Final = {
    "UINT8": "<u1",
    "INT8": "<i1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "FLOAT16": "<u2",
    "BFLOAT16": "<u2",
}


def field(name: str, leaf: str, *counts: int, doc: str = "") -> Field:
    """A field of one leaf, or of arrays of it, outermost count first."""
    declared: Type = Leaf(leaf)
    for count in reversed(counts):
        declared = Array(declared, count)
    return Field(name, declared, doc=doc)


def fields_of(count: int, name: str, *fields: Field) -> Field:
    """A field that repeats a structure."""
    return Field(name, Array(Structure(fields), count))


@dataclass(frozen=True)
class Block:
    """A block type: `values` weights in the bytes of `fields`. `id` is its number in GGUF files, None where disputed.

    `scales` are the binary16 fields that must be finite; those in `positive` are never negative from the known encoders.
    `direct` types store their values as they are, NaN payloads included.
    """

    name: str  # "Q4_K"
    id: int | None
    values: int
    fields: tuple[Field, ...]
    summary: str
    decode: DecodeBlocks
    oracle: str
    scales: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    rules: tuple[BlockRule, ...] = ()
    encode: EncodeBlocks | None = None
    direct: bool = False
    notes: str = ""

    @cached_property
    def record(self) -> np.dtype[Any]:
        """The fields as a packed numpy record: little-endian words, sub-arrays slowest first."""
        return _record(self.fields)

    @property
    def bytes(self) -> int:
        """Size of one block."""
        return self.record.itemsize

    def declare(self, count: int) -> Declared:
        """The struct type of `count` blocks one after another."""
        return Declared((Declaration(Array(Structure(self.fields), count), name=self.name),), 0)

    def records(self, payload: NDArray[np.uint8]) -> Blocks:
        """The blocks in a payload of whole ones; a view, where the payload is contiguous."""
        return np.ascontiguousarray(payload).view(self.record)


def _record(fields: tuple[Field, ...]) -> np.dtype[Any]:
    return np.dtype([(one.name, *_words(one)) for one in fields])


def _words(one: Field) -> tuple[Any, tuple[int, ...]]:
    """The numpy type of a field's elements, and their counts."""
    counts: list[int] = []
    declared = one.type
    while isinstance(declared, Array) and isinstance(declared.count, int):
        counts.append(declared.count)
        declared = declared.element
    if isinstance(declared, Structure):
        return _record(declared.fields), tuple(counts)
    if isinstance(declared, Leaf):
        return _WORDS[declared.name], tuple(counts)
    raise TypeError(f"{one.name} is no array of leaves or structures")


D: Final = field("d", "FLOAT16", doc="scale of the block")
M: Final = field("m", "FLOAT16", doc="offset of the block")
DMIN: Final = field("dmin", "FLOAT16", doc="unit of the mins of sub-blocks")
N32: Final = field("qs", "UINT8", 16, doc="byte j holds code j low and code j + 16 high")
P2: Final = field("qs", "UINT8", 64, doc="code 128 h + 32 s + m is bits 2 s, 2 s + 1 of byte 32 h + m")

C_AND_GGUF: Final = "ggml-python 0.0.45 (C library), gguf 0.19.0"
C_ALONE: Final = "ggml-python 0.0.45 (C library)"
