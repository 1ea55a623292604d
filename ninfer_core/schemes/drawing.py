"""A declared type as boxes for a drawn byte layout: what one element holds, at which bits, and how often it repeats."""

from collections.abc import Iterable
from dataclasses import dataclass

from ninfer_core.schemes.form import Form, Params, Slice
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.limits import LIMITS
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Count,
    Declared,
    Dim,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
)


@dataclass(frozen=True, slots=True)
class Box:
    """A stretch of the payload: `bits` of one element, repeated over `counts` (outermost first).

    `offset` is that of the first element, in bits from the start of the element of the box around it. A constant has no
    bits and says its shape in `what`.
    """

    name: str
    what: str
    bits: int
    offset: int
    counts: tuple[int, ...] = ()
    inside: tuple["Box", ...] = ()
    constant: bool = False

    @property
    def total(self) -> int:
        """Bits of all its elements."""
        bits = self.bits
        for count in self.counts:
            bits *= count
        return bits


def draw(declared: Declared, name: str = "payload") -> Box:
    """The root of a sound type as a box; what the checker would refuse is not drawn. Raises: ValueError."""
    root = declared.declarations[declared.root]
    if root.type is None:
        raise ValueError("a declaration of no kind has no layout")
    return _box(declared, root.type, root.name or name, 0, 0)


def draw_word(form: Form, params: Params) -> Box | None:
    """What one stored word of the codes holds, lowest bits first; None where the struct type says it."""
    if form.word is None:
        return None
    inside = _stacked(form.word(params))
    return Box("word", "word", sum(box.bits for box in inside), 0, (), inside)


def flat(box: Box, depth: int = 0) -> tuple[tuple[int, Box], ...]:
    """The box and all within it, depth first, each with its depth."""
    return ((depth, box), *(line for inner in box.inside for line in flat(inner, depth + 1)))


def _box(declared: Declared, kind: Type, name: str, offset: int, depth: int) -> Box:
    if depth > LIMITS.nesting:
        raise ValueError(f"types nest deeper than {LIMITS.nesting}")
    match kind:
        case Leaf(leaf):
            return Box(name, leaf, LEAVES[leaf].bits, offset)
        case Reference(index):
            to = declared.declarations[index]
            if to.type is None:
                raise ValueError("a reference to a declaration of no kind has no layout")
            return _box(declared, to.type, name, offset, depth + 1)
        case Array(element, count):
            inner = _box(declared, element, name, offset, depth + 1)
            counts = (_count(declared, count), *inner.counts)
            return Box(name, inner.what, inner.bits, offset, counts, inner.inside)
        case PackedArray(components, count):
            inside = _stacked(components)
            bits = sum(box.bits for box in inside)
            return Box(name, "pattern", bits, offset, (_count(declared, count),), inside)
        case Structure(fields):
            inside = _fields(declared, fields, depth)
            return Box(name, "structure", sum(box.total for box in inside), offset, (), inside)


def _fields(declared: Declared, fields: tuple[Field, ...], depth: int) -> tuple[Box, ...]:
    inside: list[Box] = []
    offset = 0
    for one in fields:
        if one.constant is not None:
            shape = "".join(f"[{n}]" for n in one.constant.dims)
            inside.append(Box(one.name, f"{one.constant.dtype}{shape}", 0, offset, constant=True))
        elif one.type is not None:
            inside.append(_box(declared, one.type, one.name, offset, depth + 1))
            offset += inside[-1].total
    return tuple(inside)


def _stacked(pieces: Iterable[Component | Slice]) -> tuple[Box, ...]:
    """Bits one above the other, the first lowest."""
    boxes: list[Box] = []
    offset = 0
    for piece in pieces:
        boxes.append(Box(piece.name, "bits", piece.bits, offset))
        offset += piece.bits
    return tuple(boxes)


def _count(declared: Declared, count: Count) -> int:
    return declared.dims[count.index] if isinstance(count, Dim) else count
