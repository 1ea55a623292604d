"""An independent reader of struct types: one bit after the other, element by element, straight from the type.

It shares no arithmetic with the code under test: no offset, stride or size is computed, the bits are simply used up.
"""

from dataclasses import dataclass, field

from ninfer_core.schemes.structs.model import (
    Array,
    Constant,
    Count,
    Declared,
    Dim,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
)

WIDTHS = {
    **dict.fromkeys(("UINT2", "INT2"), 2),
    **dict.fromkeys(("UINT4", "INT4", "FLOAT4E2M1"), 4),
    **dict.fromkeys(("FLOAT6E2M3", "FLOAT6E3M2"), 6),
    **dict.fromkeys(("BOOL", "UINT8", "INT8", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2"), 8),
    **dict.fromkeys(("FLOAT8E5M2FNUZ", "FLOAT8E8M0"), 8),
    **dict.fromkeys(("UINT16", "INT16", "FLOAT16", "BFLOAT16"), 16),
    **dict.fromkeys(("UINT32", "INT32", "FLOAT"), 32),
    **dict.fromkeys(("UINT64", "INT64", "DOUBLE"), 64),
}


@dataclass
class Read:
    """A leaf: the counts around it from the outside in, and its words in the order of the payload."""

    shape: tuple[int, ...]
    constant: Constant | None = None
    words: list[int] = field(default_factory=list)


class Reader:
    """Reads one payload; `leaves` is in canonical order, `used` the number of bits."""

    def __init__(self, declared: Declared, payload: bytes) -> None:
        self.declared = declared
        self.bits = [byte >> bit & 1 for byte in payload for bit in range(8)]
        self.used = 0
        self.leaves: dict[str, Read] = {}
        self.entered: set[int] = set()
        root = declared.declarations[declared.root].type
        assert root is not None
        self.entered.add(declared.root)
        self._register(root, "", (), True)
        self._read(root, "")

    def _count(self, count: Count) -> int:
        return self.declared.dims[count.index] if isinstance(count, Dim) else count

    def _target(self, reference: Reference) -> Type:
        type_ = self.declared.declarations[reference.index].type
        assert type_ is not None
        return type_

    def _register(self, type_: Type, path: str, shape: tuple[int, ...], first: bool) -> None:
        if isinstance(type_, Leaf):
            self.leaves[path] = Read(shape)
        elif isinstance(type_, PackedArray):
            for component in type_.components:
                self.leaves[path + "." + component.name] = Read((*shape, self._count(type_.count)))
        elif isinstance(type_, Array):
            self._register(type_.element, path, (*shape, self._count(type_.count)), first)
        elif isinstance(type_, Reference):
            again = type_.index in self.entered
            self.entered.add(type_.index)
            self._register(self._target(type_), path, shape, not again)
        else:
            for part in type_.fields:
                below = ".".join(filter(None, (path, part.name)))
                if part.type is not None:
                    self._register(part.type, below, shape, first)
                elif first and part.constant is not None:
                    self.leaves[below] = Read(part.constant.dims, part.constant)

    def _word(self, bits: int) -> int:
        word = sum(self.bits[self.used + place] << place for place in range(bits))
        self.used += bits
        return word

    def _read(self, type_: Type, path: str) -> None:
        if isinstance(type_, Leaf):
            self.leaves[path].words.append(self._word(WIDTHS[type_.name]))
        elif isinstance(type_, PackedArray):
            for _ in range(self._count(type_.count)):
                for component in type_.components:
                    self.leaves[path + "." + component.name].words.append(self._word(component.bits))
        elif isinstance(type_, Array):
            for _ in range(self._count(type_.count)):
                self._read(type_.element, path)
        elif isinstance(type_, Reference):
            self._read(self._target(type_), path)
        elif isinstance(type_, Structure):
            for part in type_.fields:
                if part.type is not None:
                    self._read(part.type, ".".join(filter(None, (path, part.name))))


def bits_needed(declared: Declared) -> int:
    """The bits that reading uses up, counted on a payload of zeros that is always long enough."""

    class Counting(Reader):
        def _word(self, bits: int) -> int:
            self.used += bits
            return 0

    return Counting(declared, b"").used
