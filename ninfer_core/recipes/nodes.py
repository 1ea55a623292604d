"""Operation trees: what a rule does to source tensors, with shape and dtype known at every node.

Dtypes are those of safetensors. Trees come out of `operations.ValueReader`, which builds a node only if its operands fit.
"""

from dataclasses import dataclass, replace

from ninfer_core.layouts.base import Shape


@dataclass(frozen=True, slots=True)
class Tensor:
    """A source tensor; `name` is a template."""

    role: str
    name: str
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Leading-axis slice from `begin`."""

    begin: int
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


Node = Tensor | Rows | ConcatRows | Reshape | Transpose | Widen | Cast


def leaves(node: Node) -> tuple[Tensor, ...]:
    """The source tensors of a tree, in reading order."""
    if isinstance(node, Tensor):
        return (node,)
    operands = node.of if isinstance(node, ConcatRows) else (node.of,)
    return tuple(leaf for operand in operands for leaf in leaves(operand))


def converts(node: Node) -> bool:
    """Whether a tree changes the type of any word."""
    if isinstance(node, Tensor):
        return False
    operands = node.of if isinstance(node, ConcatRows) else (node.of,)
    return isinstance(node, Cast | Widen) or any(converts(operand) for operand in operands)


def hoist(node: Node) -> Node:
    """The same value with conversions outside of moves, so that only words of the result are ever converted.

    Conversions go word by word and commute with every move. A move that reads more than it wants, as a transposition
    in pieces does, then never asks a cast about a neighbour. Operands that convert differently stay as they are.
    """
    match node:
        case Tensor():
            return node
        case ConcatRows(parts):
            return _hoist_joined(node, tuple(map(hoist, parts)))
        case Cast() | Widen():
            return replace(node, of=hoist(node.of))
        case Rows() | Reshape() | Transpose():
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
