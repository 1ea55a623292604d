"""Content on its way in: how far each upload is, and how to push."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.dashboard.access import SameOrigin, Submitting, Visiting
from service.dashboard.artifacts import Text
from service.dashboard.failures import PageRoute, missing
from service.dashboard.format import clipped, share, size
from service.dashboard.progress import Line
from service.dashboard.render import HEADERS, page
from service.dashboard.states import STATES
from service.errors import UploadNotFound
from service.uploads import ledger
from service.uploads.ledger import Seen

router = APIRouter(route_class=PageRoute)
UPLOADS = 50
UploadState = Literal["receiving", "storing", "stored", "failed"]


@router.get("/uploads")
def listing(
    visiting: Visiting, request: Request, state: UploadState | None = None, cursor: Text = None
) -> Response:
    """Those that are open, newest first, or those in one state."""
    listed = ledger.page(visiting.parts, visiting.project_id, limit=UPLOADS, cursor=cursor, state=state)
    return page(
        request,
        "uploads.html",
        listed=listed,
        rows=[(seen, STATES[seen.upload.state], _line(seen), _why(seen)) for seen in listed.items],
        state=state,
        choices=("receiving", "storing", "stored", "failed"),
        base=str(request.base_url).rstrip("/"),
    )


@router.post("/uploads/{upload_id}/give-up", dependencies=[SameOrigin])
def give_up(visiting: Submitting, upload_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]) -> Response:
    """Forget an upload and what came in of it; content that is stored stays."""
    try:
        ledger.give_up(visiting.parts, visiting.project_id, upload_id)
    except UploadNotFound:
        raise missing("upload") from None
    return RedirectResponse("/uploads", 303, HEADERS)


def _line(seen: Seen) -> Line | None:
    """How far one is that is not over; parts lie in the store until all of them are there, and nobody counts them here."""
    upload = seen.upload
    if upload.state == "storing":
        return Line(upload.bytes, None, f"all {size(upload.bytes)} are here and are put in place")
    if upload.state != "receiving":
        return None
    if seen.elsewhere:
        return Line(0, None, f"{size(upload.bytes)}, coming in at another machine of the service")
    if seen.offset is None:
        return Line(
            0, None, f"{size(upload.bytes)} in parts of {size(upload.part_bytes)}, straight to the store"
        )
    done = f"{share(seen.offset, upload.bytes)} · {size(seen.offset)} of {size(upload.bytes)}"
    return Line(seen.offset, upload.bytes or None, done)


def _why(seen: Seen) -> str | None:
    """What ended one that failed."""
    if seen.upload.state != "failed":
        return None
    said = seen.upload.error or {}
    return clipped(said.get("detail") or said.get("code") or "no reason was recorded")
