"""What a recipe expands to: every object's tree, every source tensor, and the hashes that `checks` states of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ninfer_core.documents.canonical import sorted_sha256
from ninfer_core.documents.templates import assignments, fill
from ninfer_core.findings import Findings
from ninfer_core.recipes.checks import Requirement
from ninfer_core.recipes.nodes import Tensor
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.trees import canonical_tree, expanded_tree

if TYPE_CHECKING:
    from ninfer_core.recipes.document import Recipe


def expanded(recipe: "Recipe") -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(object, encoder or producer, expanded tree) of every object, in document order."""
    for rule in recipe.rules:
        for name, values in zip(rule.objects, assignments(rule.each), strict=True):
            yield name, rule.maker, expanded_tree(rule.template, values)


def recipe_sha256(recipe: "Recipe") -> str:
    """Bare hex of the sorted lines `object|encode|tree`."""
    return sorted_sha256(f"{name}|{maker}|{canonical_tree(tree)}" for name, maker, tree in expanded(recipe))


def required_tensors(rules: Iterable[Rule]) -> dict[str, dict[str, Tensor]]:
    """Every source tensor that rules read, by role and name."""
    required: dict[str, dict[str, Tensor]] = {}
    for rule in rules:
        leaves = tuple(dict.fromkeys(rule.leaves))
        for values in assignments(rule.each):
            for leaf in leaves:
                required.setdefault(leaf.role, {})[fill(leaf.name, values)] = leaf
    return required


def source_requirements(recipe: "Recipe") -> dict[str, Requirement]:
    """By role, what `checks` states of the tensors that rules read."""
    return {role: _requirement(tensors) for role, tensors in required_tensors(recipe.rules).items()}


def _requirement(tensors: Mapping[str, Tensor]) -> Requirement:
    lines = (f"{name}|{','.join(map(str, leaf.shape))}|{leaf.dtype}" for name, leaf in tensors.items())
    dtypes = Counter(leaf.dtype for leaf in tensors.values())
    return Requirement(len(tensors), dict(dtypes), sorted_sha256(lines))


def compare_checks(recipe: "Recipe", findings: Findings) -> None:
    """An advisory finding for every stated hash or count that is not ours."""
    stated = recipe.checks
    found = Findings()

    def compare(member: str, want: object, have: object, **where: object) -> None:
        if want != have:
            found.add(
                "recipe.checks_differ",
                f"{member} is stated as {want}, the document as it is read here gives {have}.",
                where={"member": member, **where},
                expected=want,
                found=have,
            )

    if stated.expanded_rules is not None:
        compare("expanded_rules", stated.expanded_rules, sum(len(rule.objects) for rule in recipe.rules))
    if stated.recipe_sha256 is not None:
        compare("recipe_sha256", stated.recipe_sha256, recipe_sha256(recipe))
    if stated.encodes:
        counts = Counter(rule.maker for rule in recipe.rules for _ in rule.objects)
        compare("encodes", _sorted(stated.encodes), _sorted(counts))
    if stated.source_requirements:
        ours = source_requirements(recipe)
        for role, one in stated.source_requirements.items():
            have = ours.get(role, _requirement({}))
            compare("source_requirements", one.tensors, have.tensors, role=role)
            compare("source_requirements", _sorted(one.dtypes), _sorted(have.dtypes), role=role)
            compare("source_requirements", one.sha256, have.sha256, role=role)
    found.blame("recipe")
    findings.extend(found)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
