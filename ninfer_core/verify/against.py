"""The artifact's directory against the objects that a recipe makes, before any word is compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ninfer_core.containers.directory import Artifact, BrokenObject, ResourceObject, TensorObject
from ninfer_core.findings import Findings
from ninfer_core.identity import canonical_digest
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan
from ninfer_core.recipes.producers import is_evaluable

if TYPE_CHECKING:
    from ninfer_core.targets import Target
    from ninfer_core.verify.sample import Sample

ObjectPlan = TensorPlan | ResourcePlan
RESOURCE: Final = "a resource"

# Half of what parity needs: it stays asked and unchecked, so the verdict can't be a pass.
NO_RECIPE: Final = "no recipe was given"
NO_SOURCE: Final = "no source was given"
NO_SOURCES: Final = "no source and recipe were given"
NO_TARGET: Final = "no target was given"
NO_REGISTERED: Final = "no registered recipe for the identity of this artifact"
UNBOUND: Final = "the recipe could not be bound to its sources"


@dataclass(frozen=True, slots=True)
class Against:
    """What an artifact is judged against beside the rules of its own format.

    `plan` is the recipe bound to its sources, or None with the findings or the reason why there is none. `recipe` is
    the document alone, which says enough for `restrictions` and `relations`. `targets` are the candidates of check
    `inventory`: with `auto` the identity of the artifact picks among them, else there is one.
    """

    plan: Plan | None = None
    findings: Findings = field(default_factory=Findings)
    reason: str = UNBOUND
    recipe: Recipe | None = None
    targets: "Sequence[Target]" = ()
    auto: bool = False
    canonical: bool = False
    sample: "Sample | None" = None

    @property
    def recipe_json(self) -> dict[str, str | None] | None:
        """The recipe as a report names it; its identity is always recorded with that of the target."""
        recipe = self.document
        if recipe is None:
            return None
        target = recipe.target
        digest = None if target is None else target.digest
        return {"recipe_id": recipe.recipe_id, "digest": recipe.digest, "target_digest": digest}

    @property
    def target_digest(self) -> str | None:
        """Of the targets that may be chosen from: of the one, or of them all, so that no choice goes unnoticed."""
        if not self.targets:
            return None
        digests = sorted(target.digest for target in self.targets)
        return digests[0] if len(digests) == 1 else canonical_digest(digests)

    @property
    def document(self) -> Recipe | None:
        """The recipe, bound or not."""
        return self.recipe if self.plan is None else self.plan.recipe


def is_comparable(plan: ObjectPlan) -> bool:
    """Whether parity can tell anything of an object: its words can be derived, or its producer's bound can be tried."""
    return isinstance(plan, ResourcePlan) or plan.producer is None or is_evaluable(plan)


def pair(artifact: Artifact, plan: Plan, findings: Findings) -> Mapping[str, ObjectPlan]:
    """The plan of every object that the recipe makes with just this kind, format and shape; all else is a finding.

    Where check `inventory` ran, it has said the same already, and the caller drops these findings.
    """
    compare_identity(artifact, plan.recipe, "parity.identity_differs", findings)
    plans = {item.name: item for item in plan.objects}
    names = {item.name for item in artifact.objects}
    for name in plans:
        if name not in names:
            findings.add(
                "parity.object_missing",
                f"the recipe makes {name!r}, the artifact does not hold it",
                object=name,
                expected="the object",
                found="nothing",
            )
    paired: dict[str, ObjectPlan] = {}
    for item in artifact.objects:
        if item.name is None or isinstance(item, BrokenObject):
            continue
        wanted = plans.get(item.name)
        if wanted is None:
            findings.add(
                "parity.object_without_rule",
                f"no rule of the recipe makes {item.name!r}",
                object=item.name,
                ordinal=item.ordinal,
                expected="no such object",
                found="an object",
            )
            continue
        have = described(item)
        want = f"{wanted.fmt.name} {list(wanted.shape)}" if isinstance(wanted, TensorPlan) else RESOURCE
        if have != want:
            findings.add(
                "parity.object_differs",
                f"the artifact holds {have}, the recipe makes {want}",
                object=item.name,
                ordinal=item.ordinal,
                expected=want,
                found=have,
            )
            continue
        paired[item.name] = wanted
    return paired


def described(item: TensorObject | ResourceObject) -> str:
    """Format and shape of a stored object."""
    return f"{item.format.name} {list(item.shape)}" if isinstance(item, TensorObject) else RESOURCE


def compare_identity(artifact: Artifact, recipe: Recipe, code: str, findings: Findings) -> None:
    """A finding `code` for each member of the identity that is not the recipe's."""
    pairs = (
        ("model_id", artifact.model_id, recipe.model_id),
        ("weights_id", artifact.weights_id, recipe.weights_id),
    )
    for member, have, want in pairs:
        # Revision 3 carries no identity, revision 1 no weights_id: what is not claimed cannot contradict.
        if have is not None and have != want:
            findings.add(
                code,
                f"{member} is {have!r} in the artifact and {want!r} in the recipe",
                where={"member": member},
                expected=want,
                found=have,
            )
