"""Who is looking: logging in and out, and the visitor that every other page depends on."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service import auth
from service.dashboard.address import local
from service.dashboard.failures import LoginNeeded, PageRoute, Problem
from service.dashboard.render import HEADERS, page
from service.errors import Unauthorized
from service.parts import Parts

router = APIRouter(route_class=PageRoute)
_LONGEST_FORM = 8_000


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody with a session: the project whose things they may see, and what the service is made of."""

    parts: Parts
    project_id: str


def parts_of(request: Request) -> Parts:
    """What the service is made of."""
    parts: Parts = request.app.state.parts
    return parts


def visitor(request: Request) -> Visitor:
    """The session's owner. Raises: LoginNeeded."""
    parts = parts_of(request)
    try:
        caller = auth.session_caller(parts.database, request.cookies.get(auth.COOKIE))
    except Unauthorized:
        raise LoginNeeded from None
    return Visitor(parts, caller.project_id)


def same_origin(request: Request) -> None:
    """Refuse a form that another site's page sent. Raises: Problem.

    Browsers say where a POST comes from in `Sec-Fetch-Site`, older ones and those on plain HTTP in `Origin`. Only the
    host is compared: behind a proxy that ends TLS we see another scheme than the browser does.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin", "")
    if site == "same-origin" or (site is None and urlsplit(origin).netloc == request.headers.get("host")):
        return
    raise Problem(403, "This was sent from another site's page, so nothing was done.")


async def _sent(request: Request) -> Mapping[str, str]:
    """The members of a small form. Read here, for nobody is logged in yet: a larger one is not kept anywhere first."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > _LONGEST_FORM:
            raise Problem(413, "This form is larger than any of ours.")
    return dict(parse_qsl(content.decode("ascii", "replace"), max_num_fields=10))


Visiting = Annotated[Visitor, Depends(visitor)]
SameOrigin = Depends(same_origin)
Form = Annotated[Mapping[str, str], Depends(_sent)]


@router.get("/login")
def ask(request: Request, next: str | None = None) -> Response:  # noqa: A002  the member of the address
    """The form; who is logged in already goes on."""
    with suppress(LoginNeeded):
        visitor(request)
        return RedirectResponse(local(next), 303, HEADERS)
    return page(request, "login.html", next=local(next), wrong=False)


@router.post("/login", dependencies=[SameOrigin])
def log_in(request: Request, sent: Form) -> Response:
    """Change a token for a session."""
    onward = local(sent.get("next"))
    try:
        session = auth.open_session(parts_of(request).database, sent.get("token", "").strip())
    except Unauthorized:
        return page(request, "login.html", 403, next=onward, wrong=True)
    response = RedirectResponse(onward, 303, HEADERS)
    response.set_cookie(
        auth.COOKIE,
        session.secret,
        expires=session.expires_at,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


@router.post("/logout", dependencies=[SameOrigin])
def log_out(request: Request) -> Response:
    """End the session."""
    auth.close_session(parts_of(request).database, request.cookies.get(auth.COOKIE))
    response = RedirectResponse("/login", 303, HEADERS)
    response.delete_cookie(auth.COOKIE, path="/", httponly=True, samesite="strict")
    return response
