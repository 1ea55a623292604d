"""What the objects of one artifact are judged by, settled before any of their bytes is read.

The order is that of the check catalogue: an error of the structure leaves `inventory`, `relations` and `parity`
unchecked; an object that is not what the target says is left out of restrictions, relations and parity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ninfer_core.containers.directory import Artifact, ResourceObject
from ninfer_core.findings import Findings
from ninfer_core.formats import NumericFormat
from ninfer_core.recipes.claims import claims, relations
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.restrictions import STORED_RULES, Restriction, judges
from ninfer_core.targets import Target, registered
from ninfer_core.targets.choice import AUTO, choose
from ninfer_core.verify import inventory
from ninfer_core.verify.against import NO_RECIPE, NO_SOURCE, NO_SOURCES, NO_TARGET, Against, ObjectPlan, pair
from ninfer_core.verify.checks import Asked, CheckName
from ninfer_core.verify.pool import Pool

if TYPE_CHECKING:
    from ninfer_core.verify.relations import Relation

BROKEN_STRUCTURE: Final = "the structure is at fault, so the objects may not be what they say"
LEFT_OUT: Final = "the object is not what the target says"


@dataclass(slots=True)
class Basis:
    """`skipped` says why a whole check cannot run; `excluded` are the ordinals that fail B2 or B3."""

    sound: bool = True  # no error of the structure: entries can be trusted
    target: Target | None = None
    plans: Mapping[str, ObjectPlan] = field(default_factory=dict)
    claims: Mapping[int, tuple[Restriction, ...]] = field(default_factory=dict)
    pins: Mapping[int, str] = field(default_factory=dict)  # sha256 of resources, bare hex
    relations: "Sequence[Relation]" = ()
    excluded: frozenset[int] = frozenset()
    skipped: dict[CheckName, str] = field(default_factory=dict)

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
            "registered": any(
                one.digest == target.digest for one in registered(target.model_id, target.weights_id)
            ),
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
        reason = NO_RECIPE if not against.findings.errors else "the recipe is at fault"
        both: tuple[CheckName, ...] = ("restrictions", "relations")
        basis.skipped |= {name: reason for name in both if name in asked and name not in basis.skipped}
    else:
        if "restrictions" in asked:
            _restrictions(basis, artifact, recipe)
        if "relations" in asked and not broken:
            # Only here: it brings in the compiler, which a look at the directory does without.
            from ninfer_core.verify.relations import relation_tasks

            basis.relations = relation_tasks(
                artifact, relations(recipe), claims(recipe), basis.excluded, pool
            )
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
    basis.excluded = inventory.compare(artifact, choice.target, against.canonical, findings).excluded


def _restrictions(basis: Basis, artifact: Artifact, recipe: Recipe) -> None:
    stated = claims(recipe)
    pins = {resource.object: resource.pin.sha256 for resource in recipe.resources}
    claimed: dict[int, tuple[Restriction, ...]] = {}
    pinned: dict[int, str] = {}
    for item in artifact.readable:
        if isinstance(item, ResourceObject):
            if (pin := pins.get(item.name)) is not None:
                pinned[item.ordinal] = pin
            continue
        left_out = item.ordinal in basis.excluded
        fitting = tuple(
            one for one in stated.get(item.name, ()) if _is_judged(one.rule, item.format, left_out)
        )
        if fitting:
            claimed[item.ordinal] = fitting
    basis.claims, basis.pins = claimed, pinned


def _is_judged(rule: str, fmt: NumericFormat, left_out: bool) -> bool:
    """Whether check `restrictions` judges a rule; of an object that fails B2 or B3 only C4 and C7 are."""
    words = rule in ("canonical_group_shape", "canonical_fp8_row_shape")
    return (
        rule != "contains_special_ids"
        and rule in STORED_RULES
        and judges(rule, fmt)
        and (words or not left_out)
    )


def _sources(
    basis: Basis, artifact: Artifact, asked: Asked, against: Against, findings: Findings, broken: bool
) -> None:
    plan = against.plan
    if plan is None:
        given = against.recipe is not None or against.findings.errors
        why = against.reason if given or against.reason in (NO_RECIPE, NO_SOURCE) else NO_SOURCES
        both: tuple[CheckName, ...] = ("source", "parity")
        basis.skipped |= {name: why for name in both if name in asked and name not in basis.skipped}
        return
    if "parity" not in asked or broken:
        return
    found = Findings()
    plans = pair(artifact, plan, found)
    if basis.target is None:
        findings.extend(found)
    ordinals = {item.name: item.ordinal for item in artifact.readable}
    basis.plans = {name: item for name, item in plans.items() if ordinals[name] not in basis.excluded}
