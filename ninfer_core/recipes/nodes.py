"""Operation trees: what a rule does to source tensors, with shape and dtype known at every node.

Dtypes are those of safetensors. Trees come out of `operations.ValueReader`, which builds a node only if its operands fit.
"""

from dataclasses import dataclass, replace

from ninfer_core.documents.templates import Assignment, fill
from ninfer_core.layouts.base import Shape


@dataclass(frozen=True, slots=True)
class Tensor:
    """A source tensor; `name` is a template. A `scalar` is one word, and the source may state [] or [1]."""

    role: str
    name: str
    shape: Shape
    dtype: str
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Leading-axis slice from `begin`."""

    begin: int
    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """Of every `stride` rows those from `begin` on, `count` of them, block after block."""

    stride: int
    begin: int
    count: int
    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class GatherRows:
    """Row i is row `ids[i]` of the operand, `ids` being what the recipe makes of the object of that name."""

    ids: str
    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class ConcatRows:
    """Operands joined along the leading axis."""

    of: tuple["Node", ...]
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same words in C order under another shape."""

    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Transpose:
    """Axis i of the result is axis `axes[i]` of the operand; then C order."""

    axes: tuple[int, ...]
    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Widen:
    """BF16 words with sixteen zero bits appended."""

    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Cast:
    """Words rounded or checked into a narrower type; `of.dtype` and `dtype` say which."""

    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class EqualScalar:
    """The one word that all operands must hold; the value is that of the first."""

    of: tuple[Tensor, ...]
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Invert:
    """The binary32 reciprocal of one binary32 word, rounded to nearest even."""

    of: "Node"
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class RankedTokenIds:
    """Token ids by falling count of input `ranking`, special ones of resource `special_ids_from` forced in."""

    ranking: str
    row_width: int
    candidates: int
    special_ids_from: str
    shape: Shape
    dtype: str


Node = (
    Tensor
    | Rows
    | RowBlocks
    | GatherRows
    | ConcatRows
    | Reshape
    | Transpose
    | Widen
    | Cast
    | EqualScalar
    | Invert
    | RankedTokenIds
)


def operands(node: Node) -> tuple[Node, ...]:
    """What a node is applied to, in order."""
    match node:
        case Tensor() | RankedTokenIds():
            return ()
        case ConcatRows(of) | EqualScalar(of):
            return of
        case _:
            return (node.of,)


def leaves(node: Node) -> tuple[Tensor, ...]:
    """The source tensors of a tree, in reading order."""
    if isinstance(node, Tensor):
        return (node,)
    return tuple(leaf for operand in operands(node) for leaf in leaves(operand))


def filled(node: Node, values: Assignment) -> Node:
    """The tree of one object: every name in it with the values of its variables."""
    match node:
        case Tensor():
            return replace(node, name=fill(node.name, values))
        case RankedTokenIds():
            return node
        case EqualScalar(parts):
            return replace(node, of=tuple(replace(part, name=fill(part.name, values)) for part in parts))
        case ConcatRows(of):
            return replace(node, of=tuple(filled(part, values) for part in of))
        case _:
            return replace(node, of=filled(node.of, values))


def contains(node: Node, *kinds: type[Node]) -> bool:
    """Whether a tree has a node of one of these kinds."""
    return isinstance(node, kinds) or any(contains(operand, *kinds) for operand in operands(node))


def gathered_by(node: Node) -> tuple[str, ...]:
    """The objects whose words say which rows a tree takes."""
    own = (node.ids,) if isinstance(node, GatherRows) else ()
    return own + tuple(name for operand in operands(node) for name in gathered_by(operand))


def converts(node: Node) -> bool:
    """Whether a tree changes the type of any word."""
    return contains(node, Cast, Widen)


def hoist(node: Node) -> Node:
    """The same value with conversions outside of moves, so that only words of the result are ever converted.

    Conversions go word by word and commute with every move. A move that reads more than it wants, as a transposition
    in pieces does, then never asks a cast about a neighbour. Operands that convert differently stay as they are.
    """
    match node:
        case Tensor() | RankedTokenIds() | EqualScalar():
            return node
        case ConcatRows(parts):
            return _hoist_joined(node, tuple(map(hoist, parts)))
        case Cast() | Widen() | Invert():
            return replace(node, of=hoist(node.of))
        case Rows() | RowBlocks() | GatherRows() | Reshape() | Transpose():
            operand = hoist(node.of)
            if not isinstance(operand, Cast | Widen):
                return replace(node, of=operand)
            moved = hoist(replace(node, of=operand.of, dtype=operand.of.dtype))
            return replace(operand, of=moved, shape=node.shape)


def _hoist_joined(node: ConcatRows, operands: tuple[Node, ...]) -> Node:
    first = operands[0]
    converted = [part for part in operands if isinstance(part, Cast | Widen)]
    kinds = {(type(part), part.of.dtype) for part in converted}
    if not isinstance(first, Cast | Widen) or len(converted) != len(operands) or len(kinds) != 1:
        return replace(node, of=operands)
    joined = hoist(ConcatRows(tuple(part.of for part in converted), node.shape, first.of.dtype))
    return replace(first, of=joined, shape=node.shape)
