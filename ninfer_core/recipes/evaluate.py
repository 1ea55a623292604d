"""From an operation tree to the value it makes."""

from math import prod
from typing import Protocol

from ninfer_core.recipes.conversions import CONVERSIONS, reciprocals, widen_bf16
from ninfer_core.recipes.nodes import (
    Cast,
    ConcatRows,
    EqualScalar,
    GatherRows,
    Invert,
    Node,
    RankedTokenIds,
    Reshape,
    RowBlocks,
    Rows,
    Tensor,
    Transpose,
    Widen,
)
from ninfer_core.recipes.rows import Blocked, Gathered, Ids
from ninfer_core.recipes.values import Joined, Mapped, Permuted, Value, Window


class Makes(Protocol):
    """What trees stand on: source tensors, and what is made of other files and objects."""

    def stored(self, leaf: Tensor) -> Value:
        """The words of a source tensor."""
        ...

    def ranked(self, node: RankedTokenIds) -> Value:
        """The ids that a ranking gives."""
        ...

    def ids(self, name: str) -> Ids:
        """The words of the I32 vector that the recipe makes of the object `name`."""
        ...


def evaluate(node: Node, makes: Makes) -> Value:
    """The value of a tree."""
    match node:
        case Tensor():
            return makes.stored(node)
        case RankedTokenIds():
            return makes.ranked(node)
        case Rows(begin, of):
            return Window(evaluate(of, makes), begin * prod(node.shape[1:]), node.shape)
        case RowBlocks(stride, begin, count, of):
            return Blocked(evaluate(of, makes), stride, begin, count, node.shape)
        case GatherRows(ids, of):
            return Gathered(evaluate(of, makes), makes.ids(ids), node.shape)
        case ConcatRows(parts):
            return Joined(tuple(evaluate(part, makes) for part in parts), node.shape)
        case Reshape(of):
            return Window(evaluate(of, makes), 0, node.shape)
        case Transpose(axes, of):
            return Permuted(evaluate(of, makes), axes, node.shape)
        case EqualScalar(of):
            return Window(evaluate(of[0], makes), 0, node.shape)
        case Widen(of):
            return Mapped(evaluate(of, makes), node.dtype, widen_bf16)
        case Cast(of):
            return Mapped(evaluate(of, makes), node.dtype, CONVERSIONS[of.dtype])
        case Invert(of):
            return Mapped(evaluate(of, makes), node.dtype, reciprocals)
