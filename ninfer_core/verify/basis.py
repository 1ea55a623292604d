"""What the objects of one artifact are judged by, settled before any of their bytes is read.

The order is that of the check catalogue: an error of the structure leaves `inventory`, `relations` and `parity`
unchecked; an object that is not what the target says is left out of restrictions, relations and parity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ninfer_core.containers.directory import Artifact, TensorObject
from ninfer_core.findings import Findings
from ninfer_core.recipes.claims import claims, relations
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.inputs import NO_PIN, Pin
from ninfer_core.recipes.restrictions import STORED_RULES, Restriction, judges
from ninfer_core.strict_json import show
from ninfer_core.targets import Target, is_registered
from ninfer_core.targets.choice import AUTO, choose
from ninfer_core.verify import inventory
from ninfer_core.verify.against import (
    NO_RECIPE,
    NO_SOURCES,
    NO_TARGET,
    RESOURCE,
    UNBOUND,
    Against,
    ObjectPlan,
    compare_identity,
    described,
    pair,
)
from ninfer_core.verify.checks import Asked, CheckName
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.stated import compare_sections

if TYPE_CHECKING:
    from ninfer_core.verify.relations import Relation

_RELATED: Final = "contains_special_ids"  # judged by check `relations`
_WORD_SHAPES: Final = ("canonical_group_shape", "canonical_fp8_row_shape")  # C4 and C7, of any object

BROKEN_STRUCTURE: Final = "the structure is at fault, so the objects may not be what they say"
LEFT_OUT: Final = "the object is not what the target says"
OTHERWISE: Final = "the object is not what the recipe restricts"
UNORDERED: Final = "canonical order and placement are not stated for revision 3, so they are not judged"
UNRESTRICTED: Final = "the recipe demands nothing of stored words"
UNRELATED: Final = "the recipe relates no objects to each other"


@dataclass(slots=True)
class Basis:
    """`skipped` says why a whole check cannot run; `excluded` are the ordinals that fail B2 or B3.

    `idle` are checks about which the recipe says nothing: they are not asked, since nothing seen is nothing passed.
    """

    sound: bool = True  # no error of the structure: entries can be trusted
    target: Target | None = None
    plans: Mapping[str, ObjectPlan] = field(default_factory=dict)
    claims: Mapping[int, tuple[Restriction, ...]] = field(default_factory=dict)
    pins: Mapping[int, Pin] = field(default_factory=dict)  # what files resources must be
    unjudged: Mapping[int, str] = field(default_factory=dict)  # why a demand on an object cannot be judged
    relations: "Sequence[Relation]" = ()
    excluded: frozenset[int] = frozenset()
    skipped: dict[CheckName, str] = field(default_factory=dict)
    idle: dict[CheckName, str] = field(default_factory=dict)

    @property
    def target_json(self) -> dict[str, Any] | None:
        """The target as a report names it."""
        target = self.target
        if target is None:
            return None
        return {
            "key": target.key,
            "model_id": target.model_id,
            "weights_id": target.weights_id,
            "inventory_sha256": target.inventory_sha256,
            "digest": target.digest,
            "registered": is_registered(target),
        }


def settle(artifact: Artifact, asked: Asked, against: Against, findings: Findings, pool: Pool) -> Basis:
    """Compare the directory with target and recipe; what is wrong with it is a finding."""
    broken = any(item.about == "artifact" and item.check == "structure" for item in findings.errors)
    basis = Basis(sound=not broken)
    if broken:
        later: tuple[CheckName, ...] = ("inventory", "relations", "parity")
        basis.skipped |= {name: BROKEN_STRUCTURE for name in later if name in asked}
    elif "inventory" in asked:
        _inventory(basis, artifact, against, findings)
    recipe = against.document
    if recipe is None:
        reason = NO_RECIPE if against.reason == UNBOUND else against.reason
        reason = "the recipe is at fault" if against.findings.errors else reason
        both: tuple[CheckName, ...] = ("restrictions", "relations")
        basis.skipped |= {name: reason for name in both if name in asked and name not in basis.skipped}
    else:
        if "restrictions" in asked:
            _restrictions(basis, artifact, recipe)
        demanded = "restrictions" in asked or "relations" in asked
        compared = "parity" in asked and against.plan is not None and not broken
        if demanded and not compared and not _fills(recipe, basis.target):
            compare_identity(artifact, recipe, "restrictions.identity_differs", findings)
        if "relations" in asked and not broken:
            # Only here: it brings in the compiler, which a look at the directory does without.
            from ninfer_core.verify.relations import relation_tasks

            basis.relations = relation_tasks(
                artifact, relations(recipe), claims(recipe), basis.excluded, pool
            )
            if not basis.relations:
                basis.idle["relations"] = UNRELATED
    _sources(basis, artifact, asked, against, findings, broken)
    return basis


def _inventory(basis: Basis, artifact: Artifact, against: Against, findings: Findings) -> None:
    if not against.targets:
        basis.skipped["inventory"] = NO_TARGET
        return
    choice = choose(against.targets, artifact, AUTO if against.auto else against.targets[0].identity)
    if choice.target is None:
        basis.skipped["inventory"] = choice.reason
        return
    basis.target = choice.target
    basis.excluded = inventory.compare(artifact, choice.target, against.canonical, findings)
    if against.canonical and artifact.revision > inventory.LAST_ORDERED_REVISION:
        basis.skipped["inventory"] = UNORDERED


def _fills(recipe: Recipe, target: Target | None) -> bool:
    """Whether a recipe makes just the objects of a target, so that check `inventory` speaks for both."""
    return target is not None and recipe.target is not None and recipe.target.digest == target.digest


def _restrictions(basis: Basis, artifact: Artifact, recipe: Recipe) -> None:
    stated = {
        name: judged
        for name, covering in claims(recipe).items()
        if (judged := tuple(one for one in covering if one.rule in STORED_RULES and one.rule != _RELATED))
    }
    pins = {resource.object: resource.pin for resource in recipe.resources if resource.pin != NO_PIN}
    if (differing := _not_as_made(artifact, recipe)) is not None:
        basis.skipped["restrictions"] = differing
    elif not stated and not pins:
        basis.idle["restrictions"] = UNRESTRICTED
        return
    claimed: dict[int, tuple[Restriction, ...]] = {}
    pinned: dict[int, Pin] = {}
    unjudged: dict[int, str] = {}
    for item in artifact.readable:
        demands, pin = stated.get(item.name, ()), pins.get(item.name)
        if isinstance(item, TensorObject):
            left_out = item.ordinal in basis.excluded
            fitting = tuple(one for one in demands if one.rule in _WORD_SHAPES or not left_out)
            if fitting:
                claimed[item.ordinal] = fitting
            if len(fitting) < len(demands):
                unjudged[item.ordinal] = LEFT_OUT
            elif pin is not None or not all(judges(one.rule, item.format) for one in fitting):
                unjudged[item.ordinal] = OTHERWISE
        elif pin is not None:
            pinned[item.ordinal] = pin
        elif demands:
            unjudged[item.ordinal] = OTHERWISE
    basis.claims, basis.pins, basis.unjudged = claimed, pinned, unjudged


def _not_as_made(artifact: Artifact, recipe: Recipe) -> str | None:
    """Why a recipe cannot speak for an artifact: objects that it makes are not there, or are not what it makes.

    A bundle of the recipe's target may be absent as a whole.
    """
    made = {name: f"{fmt.name} {list(rule.value.shape)}" for rule in recipe.rules for name, fmt in rule.made}
    made |= {resource.object: RESOURCE for resource in recipe.resources}
    held = {item.name: described(item) for item in artifact.readable}
    target = recipe.target
    there = set() if target is None else {target[name].bundle for name in held.keys() & target.by_name.keys()}
    wrong = [
        name
        for name, want in made.items()
        if held.get(name) != want
        and (name in held or target is None or (bundle := target[name].bundle) is None or bundle in there)
    ]
    if not wrong:
        return None
    first = wrong[0]
    have = f"is {held[first]} here" if first in held else "is not here"
    more = f"; neither are {len(wrong) - 1:,} others as it makes them" if len(wrong) > 1 else ""
    return f"{show(first)} {have}, the recipe makes {made[first]}{more}"


def _sources(
    basis: Basis, artifact: Artifact, asked: Asked, against: Against, findings: Findings, broken: bool
) -> None:
    plan = against.plan
    if plan is None:
        given = against.recipe is not None or against.findings.errors
        why = NO_SOURCES if against.reason == UNBOUND and not given else against.reason
        both: tuple[CheckName, ...] = ("source", "parity")
        basis.skipped |= {name: why for name in both if name in asked and name not in basis.skipped}
        return
    if "parity" not in asked or broken:
        return
    found = Findings()
    plans = pair(artifact, plan, found)
    same = _fills(plan.recipe, basis.target)  # what check `inventory` said is not said again
    if not same:
        findings.extend(found)
    compare_sections(artifact, plan, basis.target if same else None, basis.excluded, findings)
    ordinals = {item.name: item.ordinal for item in artifact.readable}
    basis.plans = {name: item for name, item in plans.items() if ordinals[name] not in basis.excluded}
