"""From a rule to the value of one of its objects; single words and row numbers are read and judged here.

What does not fit is a finding about the source, and the object has no value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core import strict_json
from ninfer_core.documents.templates import Assignment, assignments, fill
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource
from ninfer_core.recipes.bundles import Bundle, BundleTree
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.evaluate import evaluate
from ninfer_core.recipes.judging import Judge
from ninfer_core.recipes.names import fits
from ninfer_core.recipes.nodes import (
    EqualScalar,
    GatherRows,
    Invert,
    Node,
    RankedTokenIds,
    Tensor,
    gathered_by,
    hoist,
    operands,
)
from ninfer_core.recipes.ranking import Rankings
from ninfer_core.recipes.rows import Ids
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.scalars import reciprocal
from ninfer_core.recipes.values import CastRefused, Held, Stored, Value
from ninfer_core.sources.checkpoint import Checkpoint

_JUDGED: Final = (RankedTokenIds, GatherRows, EqualScalar, Invert)


class Maker:
    """Makes values; every id list is made once, however many objects gather by it."""

    def __init__(
        self,
        recipe: Recipe,
        checkpoints: Mapping[str, Checkpoint],
        inputs: Mapping[str, ByteSource],
        files: Mapping[str, ByteSource],
        findings: Findings,
    ) -> None:
        """`files` are the sources of resources by their JSON path in the recipe."""
        resources = {
            resource.object: files[resource.path] for resource in recipe.resources if resource.path in files
        }
        self._checkpoints, self._findings = checkpoints, findings
        self._judge = Judge(findings)
        self._rankings = Rankings(recipe.inputs, inputs, resources, findings)
        self._judged: dict[str, tuple[Node, ...]] = {}  # by rule, the nodes that have to be judged
        self._makers = _makers_of_ids(recipe)
        self._ids: dict[str, Ids | None] = {}

    def value(self, rule: Rule, name: str, values: Assignment) -> Value | Bundle | None:
        """The value of object `name` of a rule whose source tensors all fit; None after findings.

        Raises: CutShort, CannotRead.
        """
        making = _Making(self, values)
        if isinstance(rule.value, BundleTree):
            return self._bundle(rule, rule.value, name, making)
        sound = self._all_sound(self._judged_nodes(rule, rule.value), rule, name, making)
        return evaluate(hoist(rule.value), making) if sound else None

    def inverts_exactly(self, rule: Rule, values: Assignment) -> bool:
        """Whether every `invert` in the value of a sound object has an exact result. Raises: CutShort, CannotRead."""
        making = _Making(self, values)
        tree = rule.value
        if isinstance(tree, BundleTree):
            nodes: Iterable[Node] = (part.divisor for part in tree.parts if part.divisor is not None)
        else:
            nodes = self._judged_nodes(rule, tree)
        inverted = [node for node in nodes if isinstance(node, Invert)]
        return all(reciprocal(making.word(node.of))[1] for node in inverted)

    def stored(self, leaf: Tensor, values: Assignment) -> Value:
        """The words of a source tensor that fits."""
        checkpoint = self._checkpoints[leaf.role]
        return Stored(checkpoint, checkpoint.tensors[fill(leaf.name, values)])

    def ranked(self, node: RankedTokenIds) -> NDArray[np.uint32] | None:
        """See `Rankings.ids`."""
        return self._rankings.ids(node)

    def ids(self, name: str) -> Ids | None:
        """What the recipe makes of the I32 vector `name`; None where that has findings. Raises: CutShort, CannotRead."""
        if name not in self._ids:
            self._ids[name] = self._make_ids(name)
        return self._ids[name]

    def _make_ids(self, name: str) -> Ids | None:
        rule, number = self._makers[name]
        if isinstance(rule.value, BundleTree):
            return None
        values = next(islice(assignments(rule.each), number, None))
        ranked = [node for node in self._judged_nodes(rule, rule.value) if isinstance(node, RankedTokenIds)]
        if any(self.ranked(node) is None for node in ranked):
            return None
        if not all(self._fits(leaf, values) for leaf in rule.leaves):
            return None
        value = evaluate(hoist(rule.value), _Making(self, values))
        try:
            words = value.read(0, value.shape[0])
        except CastRefused as refused:
            self._findings.add(
                "source.id_out_of_range",
                f"{strict_json.show(name)}, entry {refused.element:,}: {refused}",
                object=name,
                where={"ids": name, "index": refused.element, "rule": rule.path},
                expected="a row number of 32 bits",
                found=f"0x{refused.word:x}",
            )
            return None
        return words.astype(np.uint32, copy=False).view(np.int32).astype(np.int64)

    def _judged_nodes(self, rule: Rule, tree: Node) -> tuple[Node, ...]:
        if rule.path not in self._judged:
            self._judged[rule.path] = tuple(node for node in _nodes(tree) if isinstance(node, _JUDGED))
        return self._judged[rule.path]

    def _fits(self, leaf: Tensor, values: Assignment) -> bool:
        checkpoint = self._checkpoints.get(leaf.role)
        stored = None if checkpoint is None else checkpoint.tensors.get(fill(leaf.name, values))
        return stored is not None and fits(leaf, stored)

    def _all_sound(self, nodes: Sequence[Node], rule: Rule, name: str, making: "_Making") -> bool:
        """Every node judged, operands first: what a word is made of must be sound before it can be read."""
        sound = True
        for node in reversed(nodes):
            if sound or not isinstance(node, Invert):
                sound = self._is_sound(node, rule, name, making) and sound
        return sound

    def _is_sound(self, node: Node, rule: Rule, name: str, making: "_Making") -> bool:
        """Whether what has to be known of a node before anything is read is as it must be."""
        match node:
            case RankedTokenIds():
                return self.ranked(node) is not None
            case GatherRows(ids, of):
                return self._ids_fit(ids, of.shape[0], rule, name)
            case EqualScalar(of):
                return self._judge.words_equal(of, rule, name, making)
            case Invert(of):
                return self._judge.is_invertible(of, rule, name, making)
            case _:
                return True

    def _ids_fit(self, ids: str, rows: int, rule: Rule, name: str) -> bool:
        known = self.ids(ids)
        if known is None:
            return False
        wrong = np.flatnonzero((known < 0) | (known >= rows))
        if wrong.size:
            first = int(wrong[0])
            self._findings.add(
                "source.id_out_of_range",
                f"{strict_json.show(name)} takes row {known[first]:,} of {rows:,}, as entry {first:,} of {ids} says.",
                object=name,
                where={"ids": ids, "index": first, "rule": rule.path},
                expected=f"a row below {rows:,}",
                found=int(known[first]),
                count=int(wrong.size),
            )
        return not wrong.size

    def _bundle(self, rule: Rule, tree: BundleTree, name: str, making: "_Making") -> Bundle | None:
        # The same rows of codes and scales: looking at one of the two is enough.
        sound = self._all_sound(self._judged_nodes(rule, tree.codes), rule, name, making)
        parts = [self._judge.part(part, rule, name, making) for part in tree.parts]
        known = tuple(part for part in parts if part is not None)
        if len(known) != len(parts) or not self._judge.divisors_equal(known, rule, name) or not sound:
            return None
        codes, scales = (evaluate(hoist(node), making) for node in (tree.codes, tree.scales))
        word = known[0].divisor_word
        divisor = None if word is None else Held(np.array([word], np.uint32), "F32")
        return Bundle(tree.kind, tree.shape, codes, scales, divisor, known)


class _Making:
    """What one tree stands on: the sources under one assignment of its variables."""

    def __init__(self, maker: Maker, values: Assignment) -> None:
        self.values = values
        self._maker = maker

    def word(self, node: Node) -> int:
        """See `judging.Reading`."""
        return int(evaluate(hoist(node), self).read(0, 1)[0])

    def stored(self, leaf: Tensor) -> Value:
        """See `evaluate.Makes`."""
        return self._maker.stored(leaf, self.values)

    def ranked(self, node: RankedTokenIds) -> Value:
        """See `evaluate.Makes`; only of nodes that were found sound."""
        words = self._maker.ranked(node)
        return Held(np.empty(0, np.uint32) if words is None else words, "I32")

    def ids(self, name: str) -> Ids:
        """See `evaluate.Makes`; only of nodes that were found sound."""
        known = self._maker.ids(name)
        return np.empty(0, np.int64) if known is None else known


def _makers_of_ids(recipe: Recipe) -> dict[str, tuple[Rule, int]]:
    """The rule, and the number of its object, for every object that rows are gathered by."""
    wanted = {
        name
        for rule in recipe.rules
        for name in gathered_by(rule.value.codes if isinstance(rule.value, BundleTree) else rule.value)
    }
    return {
        name: (rule, number)
        for rule in recipe.rules
        for number, name in enumerate(rule.objects)
        if name in wanted
    }


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for operand in operands(node):
        yield from _nodes(operand)
