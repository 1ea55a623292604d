"""From a rule to the value of one of its objects; single words and row numbers are read and judged here.

What does not fit is a finding about the source, and the object has no value.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core import strict_json
from ninfer_core.documents.templates import Assignment, assignments, fill
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource
from ninfer_core.recipes.bundles import Bundle, BundleTree, Part, PartTree
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.evaluate import evaluate
from ninfer_core.recipes.names import fits
from ninfer_core.recipes.nodes import (
    EqualScalar,
    GatherRows,
    Invert,
    Node,
    RankedTokenIds,
    Tensor,
    hoist,
    operands,
)
from ninfer_core.recipes.ranking import ranked_ids, read_counts, special_ids
from ninfer_core.recipes.rows import Ids
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.scalars import fault_of_reciprocal, fault_of_scale, reciprocal
from ninfer_core.recipes.values import Held, Stored, Value
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.json_text import JsonLimits, read_object

CONFIG_LIMITS: Final = JsonLimits(64 << 20, 64)  # of a tokenizer's own config


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
        self._recipe, self._checkpoints, self._inputs = recipe, checkpoints, inputs
        self._resources = {
            resource.object: files[resource.path] for resource in recipe.resources if resource.path in files
        }
        self._findings = findings
        self._ranked: dict[RankedTokenIds, NDArray[np.uint32] | None] = {}
        self._ids: dict[str, Ids | None] = {}

    def value(self, rule: Rule, name: str, values: Assignment) -> Value | Bundle | None:
        """The value of object `name` of a rule whose source tensors all fit; None after findings.

        Raises: CutShort, CannotRead.
        """
        making = _Making(self, values)
        if isinstance(rule.value, BundleTree):
            return self._bundle(rule, rule.value, name, making)
        sound = [self._is_sound(node, rule, name, making) for node in _nodes(rule.value)]
        return evaluate(hoist(rule.value), making) if all(sound) else None

    def inverts_exactly(self, rule: Rule, values: Assignment) -> bool:
        """Whether every `invert` in the value of a sound object has an exact result. Raises: CutShort, CannotRead."""
        making = _Making(self, values)
        tree = rule.value
        if isinstance(tree, BundleTree):
            nodes: Iterable[Node] = (part.divisor for part in tree.parts if part.divisor is not None)
        else:
            nodes = _nodes(tree)
        inverted = [node for node in nodes if isinstance(node, Invert)]
        return all(reciprocal(_word(node.of, making))[1] for node in inverted)

    def stored(self, leaf: Tensor, values: Assignment) -> Value:
        """The words of a source tensor that fits."""
        checkpoint = self._checkpoints[leaf.role]
        return Stored(checkpoint, checkpoint.tensors[fill(leaf.name, values)])

    def ranked(self, node: RankedTokenIds) -> NDArray[np.uint32] | None:
        """The ids of a ranking as I32 words; None after findings, or without its files. Raises: CutShort, CannotRead."""
        if node not in self._ranked:
            self._ranked[node] = self._rank(node)
        return self._ranked[node]

    def ids(self, name: str) -> Ids | None:
        """What the recipe makes of the I32 vector `name`; None where that has findings. Raises: CutShort, CannotRead."""
        if name not in self._ids:
            self._ids[name] = self._make_ids(name)
        return self._ids[name]

    def _make_ids(self, name: str) -> Ids | None:
        for rule in self._recipe.rules:
            if name not in rule.objects or isinstance(rule.value, BundleTree):
                continue
            values = next(
                v for made, v in zip(rule.objects, assignments(rule.each), strict=True) if made == name
            )
            unranked = [
                n for n in _nodes(rule.value) if isinstance(n, RankedTokenIds) and self.ranked(n) is None
            ]
            if unranked or not all(self._fits(leaf, values) for leaf in rule.leaves):
                return None
            value = evaluate(hoist(rule.value), _Making(self, values))
            words = value.read(0, value.shape[0])
            return words.astype(np.uint32, copy=False).view(np.int32).astype(np.int64)
        return None

    def _fits(self, leaf: Tensor, values: Assignment) -> bool:
        checkpoint = self._checkpoints.get(leaf.role)
        stored = None if checkpoint is None else checkpoint.tensors.get(fill(leaf.name, values))
        return stored is not None and fits(leaf, stored)

    def _is_sound(self, node: Node, rule: Rule, name: str, making: "_Making") -> bool:
        """Whether what has to be known of a node before anything is read is as it must be."""
        match node:
            case RankedTokenIds():
                return self.ranked(node) is not None
            case GatherRows(ids, of):
                return self._ids_fit(ids, of.shape[0], rule, name)
            case EqualScalar(of):
                return self._words_equal(of, rule, name, making)
            case Invert(of):
                return self._is_invertible(of, rule, name, making)
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

    def _words_equal(self, of: tuple[Tensor, ...], rule: Rule, name: str, making: "_Making") -> bool:
        words = {fill(leaf.name, making.values): _word(leaf, making) for leaf in of}
        if len(set(words.values())) == 1:
            return True
        shown = ", ".join(f"{tensor} {_hex(word)}" for tensor, word in words.items())
        self._findings.add(
            "source.words_differ",
            f"{strict_json.show(name)} is one word that {len(words)} tensors of {of[0].role} must share: {shown}.",
            object=name,
            where={
                "role": of[0].role,
                "tensors": list(words),
                "words": [_hex(word) for word in words.values()],
                "rule": rule.path,
            },
            expected="one word",
            found=", ".join(dict.fromkeys(map(_hex, words.values()))),
        )
        return False

    def _is_invertible(self, of: Node, rule: Rule, name: str, making: "_Making") -> bool:
        word = _word(of, making)
        fault = fault_of_reciprocal(word)
        if fault is not None:
            self._findings.add(
                "source.not_invertible",
                f"{strict_json.show(name)} is the reciprocal of the word {_hex(word)}, which is {fault}.",
                object=name,
                where={"word": _hex(word), "rule": rule.path},
                expected="a finite positive number with a finite reciprocal",
                found=_hex(word),
            )
        return fault is None

    def _bundle(self, rule: Rule, tree: BundleTree, name: str, making: "_Making") -> Bundle | None:
        nodes = (*_nodes(tree.codes), *_nodes(tree.scales))
        gathered = {node.ids: node for node in nodes if isinstance(node, GatherRows)}
        sound = [self._is_sound(node, rule, name, making) for node in gathered.values()]
        parts = [self._part(part, rule, name, making) for part in tree.parts]
        known = tuple(part for part in parts if part is not None)
        if len(known) != len(parts) or not self._divisors_equal(known, rule, name) or not all(sound):
            return None
        codes, scales = (evaluate(hoist(node), making) for node in (tree.codes, tree.scales))
        word = known[0].divisor_word
        divisor = None if word is None else Held(np.array([word], np.uint32), "F32")
        return Bundle(tree.kind, tree.shape, codes, scales, divisor, known)

    def _part(self, part: PartTree, rule: Rule, name: str, making: "_Making") -> Part | None:
        prefix = fill(part.prefix, making.values)
        node = part.divisor
        if node is None:
            return Part(part.role, prefix, None, None)
        if isinstance(node, Invert):
            if not self._is_invertible(node.of, rule, name, making):
                return None
            word = _word(node.of, making)
            return Part(part.role, prefix, word, reciprocal(word)[0])
        word = _word(node, making)
        if (fault := fault_of_scale(word)) is not None:
            self._findings.add(
                "source.bundle_word_invalid",
                f"{strict_json.show(name)}: the divisor {_hex(word)} of {prefix} is {fault}.",
                object=name,
                where={"role": part.role, "prefix": prefix, "field": "divisor", "rule": rule.path},
                expected="a finite positive number",
                found=_hex(word),
            )
            return None
        return Part(part.role, prefix, word, word)

    def _divisors_equal(self, parts: tuple[Part, ...], rule: Rule, name: str) -> bool:
        words = [part.divisor_word for part in parts if part.divisor_word is not None]
        if len(set(words)) <= 1:
            return True
        shown = ", ".join(f"{part.prefix} {_hex(word)}" for part, word in zip(parts, words, strict=True))
        self._findings.add(
            "source.divisors_differ",
            f"{strict_json.show(name)} joins {len(parts)} matrices with different divisors: {shown}.",
            object=name,
            where={
                "role": parts[0].role,
                "parts": [part.prefix for part in parts],
                "words": [_hex(word) for word in words],
                "rule": rule.path,
            },
            expected="one divisor word",
            found=", ".join(dict.fromkeys(map(_hex, words))),
        )
        return False

    def _rank(self, node: RankedTokenIds) -> NDArray[np.uint32] | None:
        ranking, counts = self._recipe.inputs[node.ranking].ranking, self._inputs.get(node.ranking)
        resource = self._resources.get(node.special_ids_from)
        if ranking is None or counts is None or resource is None or counts.size != ranking.bytes:
            return None  # a finding already
        forced = self._forced(node, resource)
        if forced is None:
            return None
        return ranked_ids(read_counts(counts, ranking, node.candidates), node.shape[0], forced)

    def _forced(self, node: RankedTokenIds, resource: ByteSource) -> tuple[int, ...] | None:
        found = Findings()
        root = read_object(resource, CONFIG_LIMITS, found)
        self._findings.extend(found)
        if root is None or found.errors:
            return None
        forced, faults = special_ids(root)
        limit = node.candidates
        beyond = [number for number in forced if number >= limit]
        faults += tuple(f"special token {number} is beyond the {limit:,} candidates" for number in beyond)
        if not faults and len(forced) > node.shape[0]:
            faults = (f"{len(forced):,} special tokens do not fit into {node.shape[0]:,} ids",)
        if not faults:
            return forced
        self._findings.add(
            "source.special_ids_invalid",
            f"{resource.name}: {faults[0]}"
            + (f", and {len(faults) - 1} more faults." if faults[1:] else "."),
            object=node.special_ids_from,
            where={"file": resource.name, "faults": list(faults)},
            expected=f"special tokens below {limit:,}",
            found=faults[0],
            count=len(faults),
        )
        return None


class _Making:
    """What one tree stands on: the sources under one assignment of its variables."""

    def __init__(self, maker: Maker, values: Assignment) -> None:
        self.values = values
        self._maker = maker

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


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for operand in operands(node):
        yield from _nodes(operand)


def _word(node: Node, making: _Making) -> int:
    return int(evaluate(hoist(node), making).read(0, 1)[0])


def _hex(word: int) -> str:
    return f"0x{word:08x}"
