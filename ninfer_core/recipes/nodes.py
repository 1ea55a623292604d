"""Operation trees: what a rule does to source tensors, with shape and dtype known at every node.

Dtypes are those of safetensors. Trees come out of `operations.ValueReader`, which builds a node only if its operands fit.
"""

from dataclasses import dataclass

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
