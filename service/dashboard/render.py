"""Templates to responses: one environment that escapes everything, and the headers that every page carries."""

import hashlib
import hmac
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ninfer_core import __version__
from ninfer_core.findings import clip
from service import auth
from service.dashboard import format as say
from service.dashboard.address import Address, written
from service.dashboard.states import STATES
from service.records.types import now

_HERE = Path(__file__).parent
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_YEAR_SECONDS = 31_536_000

# Nothing but our own files may be loaded, run, framed or posted to: a name that became markup would do nothing.
CONTENT_SECURITY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}


FORM_MEMBER: Final = "csrf"  # the member of every form that says for which session it was made


class _Asset:
    """A file of ours as it is sent; its address changes with its content, so it may be kept for a year."""

    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        self.media_type = _TYPES[path.suffix]
        self.address = written(f"/static/{path.name}", {"v": hashlib.sha256(self.content).hexdigest()[:12]})


ASSETS: Final = {path.name: _Asset(path) for path in (_HERE / "static").iterdir() if path.suffix in _TYPES}


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = (
        say.name,
        say.title,
        say.clipped,
        say.short_digest,
        say.exact,
        say.ago,
        say.until,
        say.size,
        say.number,
    )
    environment.filters |= {entry.__name__: entry for entry in filters}
    environment.filters |= {
        "shape": say.shape,
        "plural": say.plural,
        "figure": say.figure,
        "place": say.place,
        "as_noted": clip,
        "plain_name": say.plain_name,
    }
    environment.globals |= {
        "address": written,
        "asset": lambda file: ASSETS[file].address,
        "states": STATES,
        "version": __version__,
        "UNKNOWN": say.UNKNOWN,
        "push_command": _push_command,
    }
    return environment


def _push_command(base: str) -> str:
    """What pushes a first file to this address, to be copied into a shell."""
    return (
        f"export NINFER_GATE_URL={shlex.quote(base)}\n"
        "export NINFER_GATE_TOKEN=...\n"
        "ninfer-gate push model.ninfer --kind ninfer --verify"
    )


_ENVIRONMENT: Final = _environment()


def form_token(request: Request) -> str:
    """What a form of this session carries; empty without one. Who only has the browser send its cookie cannot know it."""
    secret = request.cookies.get(auth.COOKIE)
    return hmac.new(secret.encode(), b"form", "sha256").hexdigest() if secret else ""


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """A page; `here` is its address, `now` the moment it is made, `path` its path for the marked entry of the menu.

    `may` says of a scope whether this visitor has it, `known` whether they logged in, `csrf` is for their forms.
    """
    visitor = getattr(request.state, "visitor", None)
    context = {
        "here": Address.of(request),
        "now": now(),
        "path": request.url.path,
        "live": None,
        "may": visitor.may if visitor is not None else lambda _scope: False,
        "known": visitor is None or visitor.known,
        "csrf": form_token(request),
    } | context
    text = _ENVIRONMENT.get_template(template).render(context)
    # Half a surrogate pair cannot be sent; names are cleaned of it, a form's answer may still hold one.
    return HTMLResponse(text.encode("utf-8", "replace"), status, HEADERS)


def fragment(template: str, macro: str, *values: object) -> str:
    """One macro's markup by itself."""
    module = _ENVIRONMENT.get_template(template).module
    return str(getattr(module, macro)(*values)).strip()


def asset(name: str) -> Response | None:
    """A file of ours; None for any other name."""
    found = ASSETS.get(name)
    if found is None:
        return None
    headers = dict(HEADERS) | {"Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable"}
    return Response(found.content, headers=headers, media_type=found.media_type)
