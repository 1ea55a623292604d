"""What listings, conversions and runs establish of an artifact's origin, as edges to be stored.

A directory only claims. A conversion here knows what it did. A run here verifies what it compared in full and passed;
a sample, or results taken over from an earlier run, make nothing verified.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sqlalchemy.orm import Session

from ninfer_core import __version__
from ninfer_core.documents.fields import MAX_INTEGER
from ninfer_core.encoders import PROFILES
from ninfer_core.recipes import Plan, TensorPlan
from ninfer_core.strict_json import Huge
from ninfer_core.verify.report import Report
from service.records import chain
from service.records.provenance import Fact

# Evidence that says where words come from.
_TIED: Final = frozenset({"copied-exact", "derived-exact", "within-bound"})
_LONGEST: Final = 1_000  # characters of a claim that becomes an edge
_MOST_ROLES, _MOST_FORMATS = 64, 64  # that become edges
# What a directory says of itself beyond these is not kept.
_MOST_CLAIM_VALUES, _MOST_CLAIM_CHARACTERS = 10_000, 1 << 20


def claims(sections: Mapping[str, Any]) -> Any:
    """What an artifact says of its own origin, as it says it; numbers that JSON readers disagree on become text."""
    told = {name: sections[name] for name in ("provenance", "metadata") if sections.get(name)}
    if not told:
        return None
    if _values(told) > _MOST_CLAIM_VALUES or _characters(told) > _MOST_CLAIM_CHARACTERS:
        return {"too_long": True}
    return _plain(told)


def claimed(told: Any, model_id: str | None, weights_id: str | None, formats: Iterable[str]) -> list[Fact]:
    """The edges that an artifact claims; `told` is what `claims` gave."""
    facts = [Fact("format", name) for name in sorted(set(formats))[:_MOST_FORMATS]]
    if model_id is not None and weights_id is not None:
        facts.append(Fact("target", f"{model_id}/{weights_id}"))
    provenance = told.get("provenance") if isinstance(told, dict) else None
    if isinstance(provenance, dict):
        facts += _claimed_sources(provenance)
    return [fact for fact in facts if len(fact.value) <= _LONGEST and len(fact.role) <= _LONGEST]


def _claimed_sources(provenance: Mapping[str, Any]) -> Iterator[Fact]:
    recipe = provenance.get("recipe")
    if isinstance(recipe, dict) and isinstance(recipe.get("digest"), str):
        yield Fact("recipe", recipe["digest"])
    sources = provenance.get("sources")
    for role, source in list(sources.items())[:_MOST_ROLES] if isinstance(sources, dict) else ():
        if isinstance(source, dict) and isinstance(source.get("repository"), str):
            revision = source.get("revision")
            at = f"@{revision}" if isinstance(revision, str) else ""
            yield Fact("checkpoint", f"{source['repository']}{at}", role)


def converted(session: Session, project_id: str, plan: Plan, checkpoints: Mapping[str, str]) -> list[Fact]:
    """What a conversion by `plan` did; `checkpoints` are role to id."""
    tensors = [item for item in plan.objects if isinstance(item, TensorPlan)]
    return [
        Fact("recipe", plan.recipe.digest),
        Fact("tool_version", __version__),
        *_target(plan.target.digest if plan.target else None, plan.recipe.model_id, plan.recipe.weights_id),
        *_checkpoints(session, project_id, checkpoints),
        *(Fact("format", name) for name in sorted({item.fmt.name for item in tensors})),
        *(Fact("encoder_profile", name) for name in encoders(tensors)),
    ]


def verified(
    session: Session, project_id: str, report: Report, plan: Plan | None, checkpoints: Mapping[str, str]
) -> list[Fact]:
    """What a run has proved: of each check only where it passed over everything, by this very run."""
    full = {check.name for check in report.checks if (check.outcome, check.coverage) == ("passed", "full")}
    whole = report.verdict == "passed" and all(item.coverage == "full" for item in report.objects)
    if not whole or not report.objects:
        return []
    facts = [Fact("tool_version", __version__)]
    if "values" in full:
        names = sorted({item.format for item in report.objects if item.format is not None})
        facts += [Fact("format", name) for name in names]
    if "inventory" in full and report.target is not None:
        target = report.target
        facts += _target(target["digest"], target["model_id"], target["weights_id"])
    tied = all(item.evidence in _TIED for item in report.objects)  # what is only legal may come from anywhere
    if "parity" in full and plan is not None and tied:
        proved = {item.name for item in report.objects if item.evidence == "derived-exact"}
        tensors = [item for item in plan.objects if isinstance(item, TensorPlan) and item.name in proved]
        facts.append(Fact("recipe", plan.recipe.digest))
        facts += _checkpoints(session, project_id, checkpoints)
        facts += [Fact("encoder_profile", name) for name in encoders(tensors)]
    return facts


def encoders(tensors: Iterable[TensorPlan]) -> list[str]:
    """The encoder profiles that make these tensors."""
    return sorted({item.encode for item in tensors if item.encode is not None} & set(PROFILES.names))


def _target(digest: str | None, model_id: str, weights_id: str) -> Iterator[Fact]:
    if digest is not None:
        yield Fact("target", digest)
        yield Fact("target", f"{model_id}/{weights_id}")


def _checkpoints(session: Session, project_id: str, checkpoints: Mapping[str, str]) -> Iterator[Fact]:
    for role, checkpoint_id in sorted(checkpoints.items()):
        digest = chain.digest_of(session, project_id, checkpoint_id)
        if digest is not None:
            yield Fact("checkpoint", digest, role)


def _values(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(_values(member) for member in value.values())
    return 1 + sum(map(_values, value)) if isinstance(value, list) else 1


def _characters(value: Any) -> int:
    """Of all names and texts."""
    if isinstance(value, dict):
        return sum(len(name) + _characters(member) for name, member in value.items())
    if isinstance(value, Huge):
        return len(value.text)
    if isinstance(value, list):
        return sum(map(_characters, value))
    return len(value) if isinstance(value, str) else 0


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, Huge):
        return value.text
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        return str(value)
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value
