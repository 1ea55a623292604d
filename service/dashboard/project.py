"""The project: how much it holds of what it may, and for its administrators who may do what, and what was done."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service import projects, tokens, trusts
from service.auth import Made
from service.dashboard.access import Administering, Form, SameOrigin, Visiting, Visitor
from service.dashboard.artifacts import Text
from service.dashboard.failures import PageRoute, missing
from service.dashboard.format import clipped, share
from service.dashboard.render import HEADERS, page
from service.errors import InvalidRequest, NotFound, ServiceError
from service.quotas import Room
from service.records import audit
from service.records.types import now
from service.scopes import ADMIN, READ, SCOPES

router = APIRouter(route_class=PageRoute)
TOKENS, TRUSTS, ENTRIES = 50, 50, 50
_SOON: Final = timedelta(days=14)
_MOST_DAYS: Final = 3_650
_LONGEST_NAME: Final = 100
# What each scope is for, beside its box.
SCOPE_WORDS: Final = {
    "read": "see what the project holds",
    "submit": "push content, start and stop jobs",
    "gate": "decide what is released",
    "admin": "all of it, tokens and trusts included",
}
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a project holds and awaits, as parts of its bar; `whole` is what the bar stands for."""

    room: Room

    @property
    def used(self) -> int:
        """Bytes that count against the quota."""
        return self.room.held_bytes + self.room.open_bytes

    @property
    def whole(self) -> int:
        """The quota, or what is used where that is more or there is none."""
        return max(self.room.quota_bytes or 0, self.used, 1)

    @property
    def segments(self) -> list[tuple[str, str, int, float, float]]:
        """Class, label, bytes, place and width in per cent of what is drawn."""
        held = 100 * self.room.held_bytes / self.whole
        coming = 100 * self.room.open_bytes / self.whole
        return [
            ("full", "held", self.room.held_bytes, 0.0, round(held, 3)),
            ("sampled", "on its way in", self.room.open_bytes, round(held, 3), round(coming, 3)),
        ]

    @property
    def says(self) -> str | None:
        """How much of the quota is used; None without one."""
        return None if not self.room.quota_bytes else share(self.used, self.room.quota_bytes)

    @property
    def full(self) -> bool:
        """Whether nothing more comes in."""
        return self.room.left_bytes == 0


@router.get("/project")
def one(
    visiting: Visiting, request: Request, token_page: Text = None, trust_page: Text = None, log: Text = None
) -> Response:
    """All of it; tokens, trusts and the log are there for administrators only."""
    return _shown(visiting, request, tokens=token_page, trusts=trust_page, log=log)


@router.post("/project/tokens", dependencies=[SameOrigin])
def add(visiting: Administering, request: Request, sent: Form) -> Response:
    """Make a token and show its text, this once."""
    scopes = [scope for scope in SCOPES if scope in sent]
    try:
        name, days = _name(sent.get("name", "")), _days(sent.get("days", ""))
        if not scopes:
            raise InvalidRequest("Say what the token may do: at least one of the scopes.")
        made = tokens.create(visiting.parts, visiting.caller, name=name, scopes=scopes, expires_in_days=days)
    except ServiceError as error:
        return _shown(visiting, request, 422, wrong=error.detail, filled=dict(sent))
    return _shown(visiting, request, made=made)


@router.post("/project/tokens/{token_id}/revoke", dependencies=[SameOrigin])
def revoke(visiting: Administering, token_id: Id) -> Response:
    """End a token, and every session that it opened."""
    try:
        tokens.revoke(visiting.parts.database, visiting.project_id, visiting.caller.actor, token_id)
    except NotFound:
        raise missing("token") from None
    return RedirectResponse("/project#tokens", 303, HEADERS)


@router.post("/project/trusts/{trust_id}/remove", dependencies=[SameOrigin])
def remove(visiting: Administering, trust_id: Id) -> Response:
    """Trust an issuer no longer, nor what it has opened."""
    try:
        trusts.remove(visiting.parts, visiting.caller, trust_id)
    except NotFound:
        raise missing("trust") from None
    return RedirectResponse("/project#trusts", 303, HEADERS)


def _shown(
    visiting: Visitor,
    request: Request,
    status: int = 200,
    *,
    made: Made | None = None,
    wrong: str | None = None,
    filled: dict[str, str] | None = None,
    **cursors: str | None,
) -> Response:
    parts, caller = visiting.parts, visiting.caller
    view = projects.view(parts, visiting.project_id)
    context: dict[str, Any] = {}
    if visiting.may(ADMIN):
        context["tokens"] = tokens.page(
            parts, caller, limit=TOKENS, cursor=cursors.get("tokens"), kinds=("api", "oidc")
        )
        context["trusts"] = trusts.page(parts, caller, limit=TRUSTS, cursor=cursors.get("trusts"))
        with parts.database.read() as session:
            context["log"] = audit.entries(
                session, visiting.project_id, limit=ENTRIES, cursor=cursors.get("log")
            )
    response = page(
        request,
        "project.html",
        status,
        view=view,
        usage=Usage(view.room),
        scopes=SCOPE_WORDS,
        soon=now() + _SOON,
        made=made,
        wrong=wrong,
        filled=filled or {READ: "on", "days": "90"},
        detail=_detail,
        **context,
    )
    if made is not None:
        response.headers["Cache-Control"] = "no-store"
    return response


def _name(text: str) -> str:
    name = text.strip()
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise InvalidRequest(f"Say what the token is for, in at most {_LONGEST_NAME} printable characters.")
    return name


def _days(text: str) -> int | None:
    """The days of the form; None for a token that does not end by itself."""
    if not text.strip():
        return None
    days = int(text) if text.strip().isdecimal() and len(text) <= len(str(_MOST_DAYS)) + 2 else 0
    if not 1 <= days <= _MOST_DAYS:
        raise InvalidRequest(f"A token ends in 1 to {_MOST_DAYS:,} days, or never where nothing is said.")
    return days


def _detail(entry: Any) -> str:
    """What a line of the log holds besides, in short."""
    return "" if entry is None else clipped(_plain(entry), 240)


def _plain(value: Any, inside: bool = False) -> str:
    """As words: a member that holds nothing says nothing."""
    if isinstance(value, dict):
        said = ((key, _plain(member, True)) for key, member in value.items() if member is not None)
        words = ", ".join(f"{key} {text}" for key, text in said if text)
        return f"({words})" if words and inside else words
    if isinstance(value, list):
        return " ".join(_plain(member, True) for member in value)
    return value if isinstance(value, str) else json.dumps(value, default=str)
