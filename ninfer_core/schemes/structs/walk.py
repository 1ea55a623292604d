"""The types below a declaration in their order, each with its place; no recursion, so depth is only a number here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ninfer_core.schemes.structs.model import Array, Leaf, PackedArray, Reference, Structure, Type


@dataclass(frozen=True, slots=True)
class Node:
    """A type and the way to it; `level` counts the arrays, packed arrays, structures and references, itself included."""

    type: Type
    level: int
    _step: str
    _parent: "Node | None" = None

    @property
    def place(self) -> str:
        """The way from the document's root: `types[2].structure[0].type.array.element`."""
        steps = []
        node: Node | None = self
        while node is not None:
            steps.append(node._step)
            node = node._parent
        return "".join(reversed(steps))

    def inside(self, member: str) -> Callable[[], str]:
        """Says the place of a member when asked: building one costs a step for each level."""
        return lambda: f"{self.place}.{member}"

    def below(self, type_: Type, step: str) -> "Node":
        """The node of a type inside this one."""
        return Node(type_, self.level + (not isinstance(type_, Leaf)), step, self)


def root_node(type_: Type, place: str) -> Node:
    """The node that a declaration begins with."""
    return Node(type_, int(not isinstance(type_, Leaf)), place)


def children(node: Node) -> Iterator[Node]:
    """The types directly inside; a reference has none, its declaration is walked on its own."""
    match node.type:
        case Array(element=element):
            yield node.below(element, ".array.element")
        case Structure(fields=fields):
            for index, field in enumerate(fields):
                if field.type is not None:
                    yield node.below(field.type, f".structure[{index}].type")
        case Leaf() | PackedArray() | Reference():
            pass


def preorder(root: Node, deepest: int, widest: int) -> Iterator[Node]:
    """Every node in declaration order, not going into what lies deeper than `deepest` or has more fields than `widest`."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        wide = isinstance(node.type, Structure) and len(node.type.fields) > widest
        if node.level <= deepest and not wide:
            stack.extend(reversed(list(children(node))))
