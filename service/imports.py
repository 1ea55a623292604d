"""Imports: content that a worker fetches from where the settings let it read, or makes of the parts of an upload."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from ninfer_core.opening import ArtifactKind
from service import outside
from service.errors import ImportNotFound
from service.parts import Parts
from service.records import imports
from service.records.models import Import, Job
from service.records.pages import Page
from service.settings import Settings

OF_UPLOAD: Final = "upload:"  # before its id, in the place of a source


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch a file, or the files directly in a folder; with `kind` they become an artifact."""

    type: ClassVar[Literal["import"]] = "import"
    source: str
    kind: ArtifactKind | None = None


@dataclass(frozen=True, slots=True)
class ImportView:
    """An import and its job."""

    row: Import
    job: Job

    @property
    def files(self) -> list[dict[str, Any]] | None:
        """What was stored, once it is."""
        return None if self.row.document is None else list(self.row.document["files"])


def settled(settings: Settings, request: Fetch) -> dict[str, Any]:
    """The request as the workflow reads it. Whether there is anything is not looked at. Raises: ImportRefused."""
    outside.allowed(settings, request.source)
    return {"type": Fetch.type, "source": request.source, "kind": request.kind}


def of_upload(upload_id: str) -> dict[str, Any]:
    """The request that makes content of an upload's parts."""
    return {"type": Fetch.type, "source": OF_UPLOAD + upload_id, "kind": None}


def one(parts: Parts, project_id: str, id_: str) -> ImportView:
    """Raises: ImportNotFound."""
    with parts.database.read() as session:
        found = imports.get(session, project_id, id_)
    if found is None:
        raise ImportNotFound(f"This project has no import {id_}.")
    return ImportView(*found)


def page(parts: Parts, project_id: str, *, limit: int, cursor: str | None) -> Page[ImportView]:
    """Newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        found = imports.page(session, project_id, limit=limit, cursor=cursor)
    return Page([ImportView(*pair) for pair in found.items], found.next)
