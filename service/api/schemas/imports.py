"""Imports, as they are asked for and as they are told."""

from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from service.api.schemas.base import Answer, Digest, Id
from service.api.schemas.content import Kind
from service.api.schemas.terms import JobSent
from service.imports import Fetch, ImportView
from service.jobs import JobState


class ImportSent(JobSent):
    """Fetch content that lies where the service may read it."""

    type: Literal["import"]
    source: str = Field(
        min_length=1,
        max_length=4_096,
        description="A path below a folder of `import_roots`, or `s3://bucket/key` of `import_buckets`; a folder or a "
        "prefix means the files directly in it.",
    )
    kind: Kind | None = Field(None, description="Make an artifact of this kind of the files.")

    def request(self) -> Fetch:
        """As the use case takes it."""
        return Fetch(self.source, self.kind)


class ImportedFile(Answer):
    """A file that is content of the project now."""

    name: str
    digest: Digest
    bytes: int


class ImportRead(Answer):
    """An import; `files` are there once all of them are."""

    id: Id
    job: Id
    state: JobState = Field(description="Of its job.")
    source: str = Field(description="As it was asked for; `upload:` and an id for an upload in parts.")
    files: list[ImportedFile] | None
    artifact: Digest | None
    created_at: datetime
    finished_at: datetime | None
    links: dict[str, str]

    @classmethod
    def of(cls, view: ImportView) -> Self:
        """An import and its job."""
        row, document = view.row, view.row.document or {}
        return cls.model_validate(
            {
                "id": row.id,
                "job": row.job_id,
                "state": view.job.state,
                "source": row.source,
                "files": view.files,
                "artifact": document.get("artifact"),
                "created_at": row.created_at,
                "finished_at": view.job.finished_at,
                "links": {"self": f"/v1/imports/{row.id}", "job": f"/v1/jobs/{row.job_id}"},
            }
        )
