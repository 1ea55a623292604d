"""Uploads and imports that the examples of the OpenAPI document speak of."""

from datetime import timedelta
from typing import Any

from service.api import examples
from service.jobs import Sent
from service.parts import Parts
from service.records import imports, jobs, uploads
from service.records.models import DEFAULT_PROJECT, Import, Job, Upload
from service.records.types import now
from service.uploads import files


def uploaded(parts: Parts) -> None:
    """Two uploads of which nothing has come, and an import that is done."""
    with parts.database.write() as session:
        for id_ in (examples.UPLOAD_ID, examples.OLD_UPLOAD_ID):
            uploads.add(session, _upload(id_))
            files.create(parts.blobs.scratch, id_)
        _import(session)


def _upload(id_: str) -> Upload:
    return Upload(
        id=id_,
        project_id=DEFAULT_PROJECT,
        protocol="tus",
        name="example.ninfer",
        bytes=len(examples.CONTENT),
        sha256=examples.CONTENT_DIGEST.removeprefix("sha256:"),
        state="receiving",
        created_by="somebody",
        created_at=now(),
        expires_at=now() + timedelta(days=1),
    )


def _import(session: Any) -> None:
    id_ = examples.IMPORT_ID
    job = Job(
        id=id_,
        project_id=DEFAULT_PROJECT,
        type="import",
        state="queued",
        request=examples.IMPORT,
        request_digest=Sent.of(id_, None).digest,
        created_at=now(),
    )
    jobs.add(session, job)
    row = Import(
        id=id_, project_id=DEFAULT_PROJECT, job_id=id_, source=examples.IMPORT["source"], created_at=now()
    )
    imports.add(session, row)
    jobs.begin(session, id_)
    file = {"name": "example.ninfer", "digest": examples.CONTENT_DIGEST, "bytes": len(examples.CONTENT)}
    imports.save(session, id_, {"files": [file], "artifact": None})
    jobs.finish(session, id_, "passed")
