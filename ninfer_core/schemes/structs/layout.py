"""Where everything lies: the bits of each part of a sound type, and how many leaves stand below it.

Sizes are exact integers. A sum or product beyond 64 bits is an overflow, unless it is repeated zero times: "zero is
fine" (section 11), whatever stands beside it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.leaves import LEAVES, LeafType
from ninfer_core.schemes.structs.model import (
    Array,
    Constant,
    Count,
    Dim,
    Leaf,
    PackedArray,
    Reference,
    Structure,
)
from ninfer_core.schemes.structs.reach import Reached
from ninfer_core.schemes.structs.walk import Node, children


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value of `bits` bits, held by a tensor of `element`; `packed` for a component."""

    element: LeafType
    packed: bool = False


@dataclass(frozen=True, slots=True)
class Repeated:
    """Equal parts one after another."""

    count: int
    of: "Laid"


@dataclass(frozen=True, slots=True)
class Part:
    """Something with a name at a bit offset; a constant has no place in the payload."""

    name: str
    offset: int
    laid: "Laid | None"
    constant: Constant | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts one after another; `filled` are those with leaves in the payload."""

    parts: tuple[Part, ...]
    filled: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """A declaration that others may contain as well; its constants are leaves once."""

    declaration: int
    laid: "Laid"


@dataclass(frozen=True, slots=True)
class Laid:
    """A type with its size; `leaves` counts those in the payload, `overflow` is where a size went beyond 64 bits.

    `longest` is how many characters the path of a leaf below may have, constants included.
    """

    bits: int
    leaves: int
    body: Scalar | Repeated | Parts | Shared
    overflow: Node | None = None
    longest: int = 0


def lay_out(reached: Reached, dims: tuple[int, ...]) -> Mapping[int, Laid]:
    """The layout of each declaration, none of which has a fault; one that is used often is laid out once."""
    known: dict[int, Laid] = {}
    for index in reached.declarations:
        laid = _lay(reached.nodes[index][0], known, dims)
        known[index] = Laid(laid.bits, laid.leaves, Shared(index, laid), laid.overflow, laid.longest)
    return known


def _lay(node: Node, known: Mapping[int, Laid], dims: tuple[int, ...]) -> Laid:
    # Recursion is safe: the levels were limited before.
    match node.type:
        case Leaf(name=name):
            return Laid(LEAVES[name].bits, 1, Scalar(LEAVES[name]))
        case PackedArray(components=components, count=count):
            scalars = [
                (part.name, Laid(part.bits, 1, Scalar(carrier(part.bits), packed=True)))
                for part in components
            ]
            return _repeat(node, _count(count, dims), _join(node, scalars))
        case Array(count=count):
            (element,) = children(node)
            return _repeat(node, _count(count, dims), _lay(element, known, dims))
        case Structure(fields=fields):
            inner = children(node)
            typed = [(f.name, f.constant or _lay(next(inner), known, dims)) for f in fields]
            return _join(node, typed)
        case Reference(index=index):
            return known[index]


def carrier(bits: int) -> LeafType:
    """The smallest unsigned type that holds a component of 1 to 64 bits."""
    return LEAVES[next(f"UINT{width}" for width in (8, 16, 32, 64) if bits <= width)]


def _count(count: Count, dims: tuple[int, ...]) -> int:
    return dims[count.index] if isinstance(count, Dim) else count


def _repeat(node: Node, count: int, of: Laid) -> Laid:
    bits = count * of.bits
    overflow = (of.overflow or (node if bits > MAX_UINT64 else None)) if count else None
    return Laid(bits, of.leaves, Repeated(count, of), overflow, of.longest)


def _join(node: Node, parts: Iterable[tuple[str, Laid | Constant]]) -> Laid:
    placed: list[Part] = []
    bits = leaves = longest = 0
    overflow = None
    for name, part in parts:
        below = 0 if isinstance(part, Constant) else part.longest
        longest = max(longest, len(name) + 1 + below)
        if isinstance(part, Constant):
            placed.append(Part(name, bits, None, part))
            continue
        placed.append(Part(name, bits, part))
        bits += part.bits
        leaves += part.leaves
        overflow = overflow or part.overflow or (node if bits > MAX_UINT64 else None)
    filled = tuple(part for part in placed if part.laid is not None and part.laid.leaves)
    return Laid(bits, leaves, Parts(tuple(placed), filled), overflow, longest)
