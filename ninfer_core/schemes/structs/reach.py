"""The declarations that a root reaches, in an order in which each stands after what it refers to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.model import Array, Declaration, PackedArray, Reference, Structure
from ninfer_core.schemes.structs.walk import Node, preorder, root_node

INLINE: Final = -1  # the index of a declaration that a value carries itself


@dataclass(frozen=True, slots=True)
class Reached:
    """What a root is made of: declarations by index and the nodes of each, the root last."""

    declarations: Mapping[int, Declaration]
    nodes: Mapping[int, tuple[Node, ...]]

    def downwards(self) -> tuple[int, ...]:
        """The declarations' indexes, the root first."""
        return tuple(self.declarations)[::-1]

    def all_nodes(self) -> Iterator[Node]:
        """Every node, those of the root first."""
        for index in self.downwards():
            yield from self.nodes[index]


def place_of(index: int) -> str:
    """The place of a declaration."""
    return "value.struct_type" if index == INLINE else f"types[{index}]"


def reach(
    model: tuple[Declaration, ...], root: int, inline: Declaration | None, limits: Limits, faults: Faults
) -> Reached:
    """The declarations from `root` down, which is an index of the model, or INLINE for `inline`.

    Adds `type_index_out_of_range`, `type_cycle`, `bad_root_kind`, `limit_declarations` and `limit_nesting`.
    """
    search = _Search(model, limits, faults)
    if inline is not None:
        search.enter(INLINE, inline)
    elif search.exists(root):
        search.enter(root, model[root])
    search.run()
    return Reached(search.done, search.nodes)


def reach_all(model: tuple[Declaration, ...], limits: Limits, faults: Faults) -> Reached:
    """The same from every declaration of a model, each looked at once."""
    search = _Search(model, replace(limits, declarations=len(model)), faults)
    for index, declaration in enumerate(model):
        if index not in search.done:
            search.enter(index, declaration)
            search.run()
    return Reached(search.done, search.nodes)


@dataclass(slots=True)
class _Search:
    """A depth-first walk over references, without recursion: hostile chains are as long as their document."""

    model: tuple[Declaration, ...]
    limits: Limits
    faults: Faults
    open: dict[int, tuple[Declaration, Iterator[tuple[Node, int]]]] = field(default_factory=dict)
    done: dict[int, Declaration] = field(default_factory=dict)
    nodes: dict[int, tuple[Node, ...]] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    too_deep: bool = False

    def exists(self, index: int, node: Node | None = None) -> bool:
        """Whether the model has the declaration that a node refers to, or the value itself."""
        if 0 <= index < len(self.model):
            return True
        message = f"no declaration {index} among {len(self.model)}."
        place = "value.type" if node is None else node.place
        self.faults.add("type_index_out_of_range", place, message, f"below {len(self.model)}", index)
        return False

    def enter(self, index: int, declaration: Declaration) -> None:
        place = place_of(index)
        type_ = declaration.type
        if not isinstance(type_, Array | PackedArray | Structure):
            found = "nothing" if type_ is None else type(type_).__name__.lower()
            expected = "an array, a packed array or a structure"
            self.faults.add("bad_root_kind", place, f"a declaration has to be {expected}.", expected, found)
        nodes: tuple[Node, ...] = ()
        if type_ is not None:
            nodes = tuple(preorder(root_node(type_, place), self.limits.nesting, self.limits.fields))
        self.nodes[index] = nodes
        references = [(node, node.type.index) for node in nodes if isinstance(node.type, Reference)]
        self.open[index] = declaration, iter(references)

    def run(self) -> None:
        while self.open:
            index = next(reversed(self.open))
            declaration, references = self.open[index]
            node, target = next(references, (None, 0))
            if node is None:
                self.leave(index, declaration)
            elif not self.exists(target, node) or target in self.done:
                continue
            elif target in self.open:
                message = f"{place_of(target)} contains itself."
                self.faults.add("type_cycle", node.place, message, "a type that ends", place_of(target))
            elif len(self.nodes) >= self.limits.declarations:
                message = f"more than {self.limits.declarations:,} declarations are reached."
                limit = self.limits.declarations
                self.faults.add("limit_declarations", node.place, message, limit, "more", limit=limit)
                self.open.clear()
                self.done.clear()  # an incomplete answer would be judged as if it were the root's
            else:
                self.enter(target, self.model[target])

    def leave(self, index: int, declaration: Declaration) -> None:
        del self.open[index]
        self.done[index] = declaration
        deepest = 0
        for node in self.nodes[index]:
            level = node.level
            if isinstance(node.type, Reference):
                level += self.levels.get(node.type.index, 0)
            deepest = max(deepest, level)
            if level > self.limits.nesting and not self.too_deep:
                self.too_deep = True
                limit = self.limits.nesting
                message = f"types are nested more than {limit} deep."
                self.faults.add("limit_nesting", node.place, message, limit, level, limit=limit)
        self.levels[index] = deepest
