"""What a job asks for, held against what the project holds and what the recipe reads, before a row is written."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, cast

from sqlalchemy.orm import Session

from ninfer_core import recipes as core
from ninfer_core.errors import Usage
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.io import is_plain_name
from ninfer_core.opening import ENTRY_SUFFIX, ArtifactKind
from ninfer_core.sources.json_text import json_path
from ninfer_core.verify import CHECKS, asked, default_checks
from service.contents import held_content
from service.errors import (
    BlobsMissing,
    CheckUnknown,
    Fault,
    InvalidRequest,
    RecipeMismatch,
    ReferenceUnknown,
)
from service.lanes import INTERACTIVE, Lane
from service.records import content
from service.records.models import Artifact

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_STEM: Final = 200
_PART_SUFFIX_BYTES: Final = len(".part-0001")


@dataclass(frozen=True, slots=True)
class Terms:
    """How a job stands in line: its lane, who goes first there (a higher priority), and when it has come too late."""

    lane: Lane = INTERACTIVE
    priority: int = 0
    deadline_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """About what share of the rows is compared, and the seed of the choice."""

    fraction: float
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify an artifact; `recipe` is a digest, the id of a registered one, `auto`, or the text of a document.

    `target` is a digest, `model/weights` or `auto`. With `full` nothing is taken over from earlier runs, with
    `max_age_seconds` nothing that is older.
    """

    type: ClassVar[Literal["verify"]] = "verify"
    artifact: str
    checks: tuple[str, ...] = ()
    checkpoints: Mapping[str, str] = field(default_factory=dict)  # role -> id
    inputs: Mapping[str, str] = field(default_factory=dict)  # name -> digest
    recipe: str | bytes | None = None
    target: str | None = None
    canonical: bool = False
    sample: Sample | None = None
    full: bool = False
    max_age_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What a conversion writes; without a name it is called after the recipe's identity."""

    revision: int
    max_file_bytes: int | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """Make an artifact; `recipe` is a digest, the id of a registered one, or the text of a document."""

    type: ClassVar[Literal["convert"]] = "convert"
    recipe: str | bytes
    checkpoints: Mapping[str, str]
    output: Output
    inputs: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None


def settled(
    session: Session,
    project_id: str,
    request: Verify | Convert,
    recipe: core.Recipe | None,
    target: str | None,
    lost: frozenset[str],
) -> tuple[dict[str, Any], str | None]:
    """The request as workflows read it, and the id of the artifact to verify.

    `recipe` is the one that it names, None too where `auto` found none, which is kept as it was asked for; `target` is
    the digest of the one that it names, or `auto`; `lost` is `contents.lost` of its inputs.

    Raises: CheckUnknown, ReferenceUnknown, BlobsMissing, RecipeMismatch, InvalidRequest.
    """
    artifact = _artifact(session, project_id, request.artifact) if isinstance(request, Verify) else None
    if isinstance(request, Verify):
        _require_sense(request)
    _require_checkpoints(session, project_id, request.checkpoints)
    _require_inputs(session, project_id, request.inputs, lost)
    whole: dict[str, Any] = {"type": request.type}
    if isinstance(request, Verify) and artifact is not None:
        # As on the command line, half of what parity needs leaves it asked and unchecked; a slip of names does not.
        if recipe is not None:
            _require_agreement(recipe, request, whole_set=bool(request.checkpoints))
        kind = cast(ArtifactKind, artifact.kind)
        checks = _checks(request.checks or _usual(kind, request, target))
        whole |= {"artifact": artifact.digest, "checks": checks}
        sample = request.sample
        whole |= {
            "canonical": request.canonical,
            "sample": None if sample is None else {"fraction": sample.fraction, "seed": sample.seed},
            "full": request.full,
            "max_age_seconds": request.max_age_seconds,
        }
    whole |= {
        "checkpoints": dict(request.checkpoints),
        "inputs": dict(request.inputs),
        "recipe": recipe.digest if recipe is not None else request.recipe,
        "target": target,
    }
    if isinstance(request, Convert) and recipe is not None:
        _require_agreement(recipe, request, whole_set=True)
        whole["output"] = _output(request.output, recipe)
    return whole, artifact.id if artifact is not None else None


def _require_sense(request: Verify) -> None:
    """Refuse what would say nothing, as the command line does. Raises: InvalidRequest."""
    faults = []
    if request.canonical and request.target is None:
        why = "it is about the order and placement of a target, and no target is named"
        faults.append(Fault("body", "$.canonical", why))
    if request.sample is not None and not request.checkpoints:
        why = "it is about the comparison with a source, and no checkpoint is named"
        faults.append(Fault("body", "$.sample", why))
    for asked_for, member, check in (
        (request.canonical, "canonical", "inventory"),
        (request.sample is not None, "sample", "parity"),
    ):
        if asked_for and not faults and request.checks and check not in request.checks:
            why = f"it is about the check {check}, and `checks` leaves that out"
            faults.append(Fault("body", f"$.{member}", why))
    if faults:
        raise InvalidRequest("A part of the request says nothing.", *faults)


def _usual(kind: ArtifactKind, request: Verify, target: str | None) -> tuple[str, ...]:
    return default_checks(
        kind,
        target=target is not None,
        recipe=request.recipe is not None,
        source=bool(request.checkpoints or request.inputs),
    )


def safe_name(recipe: core.Recipe) -> str:
    """A file name out of a recipe's identity, which may hold anything."""
    stem = _UNSAFE.sub("-", f"{recipe.model_id}-{recipe.weights_id}").strip("-.")[:_LONGEST_STEM]
    return f"{stem or 'artifact'}{ENTRY_SUFFIX}"


def _checks(names: Iterable[str]) -> list[str]:
    listed = list(names)
    try:
        chosen = asked(listed)
    except Usage as error:
        faults = [
            Fault(
                "body",
                json_path(("checks", index)),
                f"there is no check {name!r}; there are {', '.join(CHECKS)}",
            )
            for index, name in enumerate(listed)
            if name not in CHECKS
        ]
        raise CheckUnknown(f"There are the checks {', '.join(CHECKS)}.", *faults) from error
    return [name for name in CHECKS if name in chosen]


def _artifact(session: Session, project_id: str, digest: str) -> Artifact:
    artifact = content.find_artifact(session, project_id, digest)
    if artifact is None:
        raise unknown("artifact", digest, "$.artifact")
    return artifact


def _require_checkpoints(session: Session, project_id: str, checkpoints: Mapping[str, str]) -> None:
    faults = [
        Fault("body", json_path(("checkpoints", role)), f"this project holds no checkpoint {checkpoint_id}")
        for role, checkpoint_id in checkpoints.items()
        if content.checkpoint(session, project_id, checkpoint_id) is None
    ]
    if faults:
        raise ReferenceUnknown(f"{len(faults)} of {len(checkpoints)} checkpoints are not here.", *faults)


def _require_inputs(
    session: Session, project_id: str, inputs: Mapping[str, str], lost: frozenset[str]
) -> None:
    held = held_content(session, project_id, inputs.values(), lost)
    faults = [
        Fault("body", json_path(("inputs", name)), f"this project does not hold {digest}")
        for name, digest in inputs.items()
        if digest.removeprefix(DIGEST_PREFIX) not in held
    ]
    if faults:
        raise BlobsMissing(f"{len(faults)} of {len(inputs)} inputs have no content here.", *faults)


def _require_agreement(recipe: core.Recipe, request: Verify | Convert, *, whole_set: bool) -> None:
    faults: list[Fault] = []
    for member, what, named, given in (
        ("checkpoints", "role", recipe.sources, request.checkpoints),
        ("inputs", "input", recipe.inputs, request.inputs),
    ):
        there = ", ".join(map(repr, named)) or "none"
        faults += [
            Fault("body", json_path((member, name)), f"the recipe has no {what} {name!r}; it reads {there}")
            for name in given
            if name not in named
        ]
        if whole_set:
            faults += [
                Fault(
                    "body",
                    json_path((member, name)),
                    f"the recipe reads the {what} {name!r}, which is not given",
                )
                for name in named
                if name not in given
            ]
    if faults:
        raise RecipeMismatch(f"{faults[0].message[0].upper()}{faults[0].message[1:]}.", *faults)


def _output(output: Output, recipe: core.Recipe) -> dict[str, Any]:
    name = output.name if output.name is not None else safe_name(recipe)
    if not is_plain_name(name) or len(name.encode()) + _PART_SUFFIX_BYTES > 255:
        why = "not a plain file name: no folders, at most 245 bytes"
        raise InvalidRequest("The output needs another name.", Fault("body", "$.output.name", why))
    return {"revision": output.revision, "max_file_bytes": output.max_file_bytes, "name": name}


def unknown(what: str, name: str, path: str) -> ReferenceUnknown:
    """The refusal of a name that stands for nothing here."""
    detail = f"this project holds no {what} {name}"
    return ReferenceUnknown(f"T{detail[1:]}.", Fault("body", path, detail))
