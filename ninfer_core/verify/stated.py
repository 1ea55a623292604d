"""What a directory of revision 3 says beside its objects, against what the recipe has `convert` say there.

Bindings, components, uses and metadata are what a reader goes by. Where the recipe states them they have to be equal;
where it is silent another converter may have said more, which is told and fails nothing. Provenance is a claim: what
contradicts it is told, and nothing passes or fails for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ninfer_core.containers.directory import Artifact
from ninfer_core.containers.writer import sections
from ninfer_core.documents.contrast import Difference, contradictions, differences, whole_difference
from ninfer_core.findings import Findings, Severity
from ninfer_core.recipes.heading import heading
from ninfer_core.recipes.plan import Plan, TensorPlan
from ninfer_core.targets import Target
from ninfer_core.verify.bound_roles import bound_parts, judged_roles

_COMPARED: Final = ("components", "uses", "metadata")  # and bindings, which have two spellings


def compare_sections(
    artifact: Artifact, plan: Plan, target: Target | None, excluded: frozenset[int], findings: Findings
) -> None:
    """Compare a sound directory with what the recipe gives it; revisions 1 and 2 say nothing beside their objects.

    `target` is that of check `inventory` where it ran for this recipe's own: what it said of bindings and of the
    identity is not said again. `excluded` are the ordinals that it leaves out.
    """
    if artifact.revision < 3:
        return
    held = {item.name for item in artifact.tensors}
    names = [item.name for item in plan.objects if isinstance(item, TensorPlan) and item.name in held]
    wanted = sections(names, heading(plan.recipe))
    found, expected = (
        {name: said[name] for name in _COMPARED if name in said} for said in (artifact.sections, wanted)
    )
    stated = {"components": plan.recipe.components is not None, "metadata": plan.recipe.metadata is not None}
    told: list[tuple[Difference, Severity]] = [*_bindings(artifact, wanted["bindings"], target, excluded)]
    told += (
        (difference, "error" if stated.get(difference.path.partition(".")[0]) else "advisory")
        for difference in differences("", found, expected)
    )
    for difference, severity in told:
        have, want = difference.a or "nothing", difference.b or "nothing"
        findings.add(
            "parity.section_differs",
            f"{difference.path} is {have} in the artifact, `convert` writes {want} for the recipe",
            where={"path": difference.path},
            expected=want,
            found=have,
            severity=severity,
        )
    claims = dict(wanted["provenance"])
    if target is not None:
        claims.pop("identity")
    for claim in contradictions("provenance", artifact.sections.get("provenance", {}), claims):
        findings.add(
            "parity.claim_differs",
            f"{claim.path} claims {claim.a}, this was verified with {claim.b}; a claim is no proof",
            where={"path": claim.path},
            expected=claim.b,
            found=claim.a,
        )


def _bindings(
    artifact: Artifact, wanted: Mapping[str, Any], target: Target | None, excluded: frozenset[int]
) -> Iterator[tuple[Difference, Severity]]:
    """Bindings that are not the recipe's, each told as a whole, whichever way it is spelled.

    A name of the recipe's that is bound to anything else is an error. One that is not bound, and one that the recipe does
    not know, is another reader's way to the same objects, unless a target says otherwise.
    """
    found: Mapping[str, Any] = artifact.sections["bindings"]
    stored = {item.name: item for item in artifact.readable}
    settled: frozenset[str] = frozenset()
    if target is not None:
        sound = {name: item for name, item in stored.items() if item.ordinal not in excluded}
        settled = judged_roles(artifact.sections, target, sound)
    for name in (*wanted, *(name for name in found if name not in wanted)):
        have, want = found.get(name), wanted.get(name)
        equal = (
            have is not None and want is not None and bound_parts(have, stored) == bound_parts(want, stored)
        )
        if name not in settled and not equal:
            wrong = have is not None and want is not None
            yield whole_difference(f"bindings.{name}", have, want), "error" if wrong else "advisory"
