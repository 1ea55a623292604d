"""Who is looking: logging in and out, the visitor that every other page depends on, and who may send which form."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service import auth, entry
from service.dashboard.address import local
from service.dashboard.failures import LoginNeeded, PageRoute, Problem, missing
from service.dashboard.render import FORM_MEMBER, HEADERS, form_token, page
from service.errors import Unauthorized
from service.parts import Parts
from service.scopes import ADMIN, SUBMIT, Scope

router = APIRouter(route_class=PageRoute)
_LONGEST_FORM: Final = 8_000
_MOST_MEMBERS: Final = 20
_LACKS: Final = {
    SUBMIT: "This session may look, and neither start nor stop anything: its token lacks `submit`."
}


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks, and what the service is made of; some services show a project to who has not logged in."""

    parts: Parts
    caller: auth.Caller

    @property
    def known(self) -> bool:
        """Whether they logged in."""
        return self.caller.token_id is not None

    @property
    def project_id(self) -> str:
        """The project whose things they may see."""
        return self.caller.project_id

    def may(self, scope: Scope) -> bool:
        """Whether a form that takes this is offered to them."""
        return self.known and self.caller.may(scope)


def parts_of(request: Request) -> Parts:
    """What the service is made of."""
    parts: Parts = request.app.state.parts
    return parts


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


def _caller(request: Request) -> auth.Caller | None:
    try:
        return entry.visitor(parts_of(request), request.cookies.get(auth.COOKIE), _address(request))
    except Unauthorized:
        return None


def visitor(request: Request) -> Visitor:
    """The session's owner, else anybody where the settings let them. Raises: LoginNeeded, RateLimited."""
    caller = _caller(request)
    if caller is None:
        raise LoginNeeded
    found = Visitor(parts_of(request), caller)
    request.state.visitor = found  # what a page offers depends on it
    return found


def _has_session(request: Request) -> bool:
    caller = _caller(request)
    return caller is not None and caller.token_id is not None


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
    try:
        return dict(parse_qsl(content.decode("ascii", "replace"), max_num_fields=_MOST_MEMBERS))
    except ValueError:
        raise Problem(400, "This form has more members than any of ours.") from None


Visiting = Annotated[Visitor, Depends(visitor)]
SameOrigin = Depends(same_origin)
Form = Annotated[Mapping[str, str], Depends(_sent)]


def of_this_session(request: Request, sent: Mapping[str, str]) -> None:
    """Refuse a form that was not made for this session. Raises: Problem."""
    made_for = form_token(request)
    if not secrets.compare_digest(sent.get(FORM_MEMBER, "").encode(), made_for.encode()) or not made_for:
        raise Problem(
            403, "This form was made for another session. Go back, reload the page and send it again."
        )


def _sending(scope: Scope) -> Any:
    def sender(request: Request, visiting: Visiting, sent: Form) -> Visitor:
        if not visiting.known:
            raise LoginNeeded
        of_this_session(request, sent)
        if not visiting.may(scope):
            # What is an administrator's business is not there for anybody else.
            raise Problem(403, _LACKS[scope]) if scope in _LACKS else missing("page")
        return visiting

    return Depends(sender)


Submitting = Annotated[Visitor, _sending(SUBMIT)]  # who may start and stop jobs
Administering = Annotated[Visitor, _sending(ADMIN)]  # who may give others access


@router.get("/login")
def ask(request: Request, next: str | None = None) -> Response:  # noqa: A002  the member of the address
    """The form; who is logged in already goes on."""
    if _has_session(request):
        return RedirectResponse(local(next), 303, HEADERS)
    return page(request, "login.html", next=local(next), wrong=False)


@router.post("/login", dependencies=[SameOrigin])
def log_in(request: Request, sent: Form) -> Response:
    """Change a token for a session."""
    onward = local(sent.get("next"))
    try:
        session = entry.log_in(parts_of(request), sent.get("token", "").strip(), _address(request))
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
def log_out(request: Request, sent: Form) -> Response:
    """End the session."""
    if _has_session(request):
        of_this_session(request, sent)
    auth.close_session(parts_of(request).database, request.cookies.get(auth.COOKIE))
    response = RedirectResponse("/login", 303, HEADERS)
    response.delete_cookie(auth.COOKIE, path="/", httponly=True, samesite="strict")
    return response
