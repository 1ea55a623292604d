"""Checks of what is stored by foreign schemes, and of payloads against struct types: asked for, and what came of them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints

from ninfer_core.schemes.run import MAX_RANK
from ninfer_core.strict_json import Huge, Real
from service.api.schemas.base import Answer, Digest, Id, Sent
from service.api.schemas.schemes import Verdict
from service.api.schemas.terms import JobSent
from service.jobs import JobState
from service.scheme_checks import (
    Archive,
    ArchiveKind,
    ArrayKind,
    CheckScheme,
    SchemeCheckView,
    Stored,
)

_MOST_PARTS = 64
_MOST_PARAMS = 64
_LONGEST_NAME = 200

Name = Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_NAME)]


def _plain(value: Any) -> Any:
    """A JSON value as parameters of forms hold it. Raises: ValueError for what none holds."""
    if isinstance(value, Real):
        return value.value
    if isinstance(value, list) and all(not isinstance(item, list | dict) for item in value):
        return [_plain(item) for item in value]
    if isinstance(value, list | dict | Huge):
        raise ValueError("Input should be a number, a text, true, false, or an array of numbers")
    return value


Number = Annotated[float, BeforeValidator(lambda value: value.value if isinstance(value, Real) else value)]
Param = Annotated[Any, BeforeValidator(_plain)]


class StoredSent(Sent):
    """One part: content of this project that is a `.npy` file, or its little-endian bytes alone."""

    digest: Digest
    kind: ArrayKind = "npy"


class ArchiveSent(Sent):
    """Content that holds the parts under their names, after a prefix such as `model.layers.0.mlp.up_proj.`."""

    digest: Digest
    kind: ArchiveKind = "safetensors"
    prefix: str = Field("", max_length=1_000)


class SchemeSent(JobSent):
    """Check stored arrays of a foreign scheme, or, with `struct`, a payload against its struct type."""

    type: Literal["scheme"]
    form: Name | None = Field(None, description="A form of the catalogue, or a scheme whose files have one.")
    parts: dict[str, StoredSent] = Field(
        default_factory=dict, max_length=_MOST_PARTS, description="The parts by their names."
    )
    archive: ArchiveSent | None = Field(None, description="In place of `parts`.")
    shape: list[Annotated[int, Field(ge=0, le=2**63 - 1)]] | None = Field(
        None, max_length=MAX_RANK, description="Of the decoded tensor; what the parts imply by default."
    )
    params: dict[str, Param] = Field(
        default_factory=dict, max_length=_MOST_PARAMS, description="Parameters of the form."
    )
    reference: Digest | None = Field(
        None, description="A `.npy` file of what the parts have to decode to, word for word in its own type."
    )
    within: Number = Field(
        0.0, ge=0, allow_inf_nan=False, description="How far from the reference values may be."
    )
    source: Digest | None = Field(
        None, description="A `.npy` file of the values before quantization: the error is measured."
    )
    struct: Digest | None = Field(None, description="A document of a struct type, in place of a form.")
    payload: Digest | None = Field(None, description="The payload of `struct`; its own by default.")

    def request(self) -> CheckScheme:
        """As the use case takes it."""
        archive = self.archive
        return CheckScheme(
            self.form,
            {name: Stored(part.digest, part.kind) for name, part in self.parts.items()},
            None if archive is None else Archive(archive.digest, archive.kind, archive.prefix),
            None if self.shape is None else tuple(self.shape),
            self.params,
            self.reference,
            self.within,
            self.source,
            self.struct,
            self.payload,
        )


class SchemeCheckRead(Answer):
    """A check of stored arrays or of a payload; `verdict` is null until it is final."""

    id: Id
    job: Id
    state: JobState = Field(description="Of its job.")
    subject: Literal["parts", "struct"]
    form: str | None
    verdict: Verdict | None
    errors: int | None
    advisories: int | None
    created_at: datetime
    finished_at: datetime | None
    links: dict[str, str]

    @classmethod
    def of(cls, view: SchemeCheckView) -> Self:
        """A check."""
        return cls.model_validate(_head(view))


class SchemeCheckWhole(SchemeCheckRead):
    """With its document, `ninfer-gate/scheme-check/1` or `ninfer-gate/struct-check/1`."""

    report: dict[str, Any] | None

    @classmethod
    def whole(cls, view: SchemeCheckView) -> Self:
        """With its document."""
        return cls.model_validate({**_head(view), "report": view.check.document if view.answered else None})


def _head(view: SchemeCheckView) -> dict[str, Any]:
    check, answered = view.check, view.answered
    links = {"self": f"/v1/scheme-checks/{check.id}", "job": f"/v1/jobs/{check.job_id}"}
    if check.form is not None:
        links["form"] = f"/v1/schemes/{check.form}"
    return {
        "id": check.id,
        "job": check.job_id,
        "state": view.job.state,
        "subject": check.subject,
        "form": check.form,
        "verdict": check.verdict if answered else None,
        "errors": check.errors if answered else None,
        "advisories": check.advisories if answered else None,
        "created_at": check.created_at,
        "finished_at": view.job.finished_at,
        "links": links,
    }
