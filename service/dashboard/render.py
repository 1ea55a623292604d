"""Templates to responses: one environment that escapes everything, and the headers that every page carries."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ninfer_core import __version__
from ninfer_core.findings import clip
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
    filters = (say.name, say.title, say.clipped, say.short_digest, say.exact, say.ago, say.size, say.number)
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
    }
    return environment


_ENVIRONMENT: Final = _environment()


def page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """A page; `here` is its address, `now` the moment it is made, `path` its path for the marked entry of the menu."""
    context = {"here": Address.of(request), "now": now(), "path": request.url.path, "live": None} | context
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
