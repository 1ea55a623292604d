"""What a recipe claims of its objects, without any source: restrictions by object, and relations between objects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from ninfer_core.documents.fields import Faults
from ninfer_core.documents.templates import assignments
from ninfer_core.formats import GroupedFormat
from ninfer_core.recipes.bundles import BundleTree
from ninfer_core.recipes.nodes import GatherRows, Node, RankedTokenIds, filled
from ninfer_core.recipes.restrictions import STORED_RULES, Restriction, judges
from ninfer_core.recipes.rules import Rule

if TYPE_CHECKING:
    from ninfer_core.recipes.document import Recipe

MAX_MATCHES: Final = 1 << 22  # names times globs that are compared
MAX_PAIRS: Final = 1 << 12  # of draft heads and heads, each read whole by check `relations`


@dataclass(frozen=True, slots=True)
class IdList:
    """An object that lists ranked token ids; `special_ids_from` is a resource, `top_ids` the first entries if known."""

    object: str
    special_ids_from: str
    candidates: int
    top_ids: tuple[int, ...] | None
    rule: str


@dataclass(frozen=True, slots=True)
class HeadPair:
    """Two encodes of one source matrix: row i of `draft` is row ids[i] of `head`, `ids` being an object."""

    head: str
    draft: str
    ids: str


@dataclass(frozen=True, slots=True)
class Relations:
    """What must hold between objects of an artifact that the recipe made."""

    id_lists: tuple[IdList, ...]
    head_pairs: tuple[HeadPair, ...]


def claims(recipe: "Recipe") -> Mapping[str, tuple[Restriction, ...]]:
    """The restrictions of every object that the rules make, in document order."""
    return {name: covering for rule in recipe.rules for name, covering in _of_rule(rule, recipe.restrictions)}


def _of_rule(
    rule: Rule, restrictions: Sequence[Restriction]
) -> Iterator[tuple[str, tuple[Restriction, ...]]]:
    seen: dict[tuple[int, ...], tuple[Restriction, ...]] = {}  # objects of a rule mostly share one tuple
    for name, fmt in rule.made:
        covering = tuple(
            index
            for index, restriction in enumerate(restrictions)
            if restriction.scope.covers(name, rule.maker, fmt.name)
        )
        yield name, seen.setdefault(covering, tuple(restrictions[index] for index in covering))


def check_scopes(faults: Faults, restrictions: Sequence[Restriction], rules: Sequence[Rule]) -> None:
    """Findings for globs that cover nothing, and for demands that say nothing of what they cover: what was meant to be
    restricted is not.

    A scope by encoder or format only may be empty: it speaks of objects that another recipe of the family has.
    """
    objects = sum(len(rule.objects) for rule in rules)
    if len(restrictions) * objects > MAX_MATCHES:
        message = f"{len(restrictions):,} restrictions of {objects:,} objects."
        expected = f"at most {MAX_MATCHES:,} comparisons"
        faults.add(
            "too_many_objects", ("restrictions",), message, expected, f"{len(restrictions) * objects:,}"
        )
        return
    for index, restriction in enumerate(restrictions):
        covered = {
            name: fmt
            for rule in rules
            for name, fmt in rule.made
            if restriction.scope.covers(name, rule.maker, fmt.name)
        }
        if restriction.scope.object is not None and not covered:
            message, found = "the scope covers no object.", restriction.scope.object
            faults.add("scope_empty", ("restrictions", index, "scope"), message, "at least one object", found)
        deaf = {name: fmt for name, fmt in covered.items() if not judges(restriction.rule, fmt)}
        if restriction.rule in STORED_RULES and deaf:
            formats = ", ".join(dict.fromkeys(fmt.name for fmt in deaf.values()))
            message = f"{restriction.rule} says nothing of words of {formats}."
            expected = "objects that the rule can judge"
            faults.add("restriction_unsuitable", ("restrictions", index), message, expected, formats, deaf)


def relations(recipe: "Recipe") -> Relations:
    """Id lists, and the draft heads that are rows of an encoded head."""
    lists = tuple(
        IdList(name, node.special_ids_from, node.candidates, _top_ids(recipe, node), rule.path)
        for rule in recipe.rules
        if isinstance(node := rule.value, RankedTokenIds)
        for name in rule.objects
    )
    return Relations(lists, tuple(_head_pairs(recipe.rules)))


def _top_ids(recipe: "Recipe", node: RankedTokenIds) -> tuple[int, ...] | None:
    ranking = recipe.inputs[node.ranking].ranking
    return None if ranking is None else ranking.top_ids


def check_pairs(faults: Faults, rules: Sequence[Rule]) -> None:
    """A finding where more draft heads would have to be compared with heads than any model has."""
    if len(list(islice(_head_pairs(rules), MAX_PAIRS + 1))) > MAX_PAIRS:
        message = "objects that are gathered rows of one matrix, times other encodings of that matrix."
        expected = f"at most {MAX_PAIRS:,} pairs of them"
        faults.add("too_many_objects", ("rules",), message, expected, f"more than {MAX_PAIRS:,}")


def _head_pairs(rules: Iterable[Rule]) -> Iterator[HeadPair]:
    own = [rule for rule in rules if rule.producer is None and not isinstance(rule.value, BundleTree)]
    drafts = [rule for rule in own if isinstance(rule.value, GatherRows)]
    wanted = {
        (rule.value.of.shape, rule.value.of.dtype) for rule in drafts if isinstance(rule.value, GatherRows)
    }
    heads: dict[Node, list[str]] = {}
    for head in own:
        if not isinstance(head.value, BundleTree) and (head.value.shape, head.value.dtype) in wanted:
            for name, tree in _encoded(head, head.value):
                heads.setdefault(tree, []).append(name)
    for draft in drafts:
        if not isinstance(draft.value, GatherRows):
            continue
        for name, operand in _encoded(draft, draft.value.of):
            yield from (HeadPair(head, name, draft.value.ids) for head in heads.get(operand, ()))


def _encoded(rule: Rule, tree: Node) -> Iterator[tuple[str, Node]]:
    """The grouped objects of a rule, each with `tree` as it is for this object."""
    for name, fmt, values in zip(rule.objects, rule.formats, assignments(rule.each), strict=True):
        if isinstance(fmt, GroupedFormat):
            yield name, filled(tree, values)
