"""Addresses of pages: what a person chose stands in them, so that back, reload and a sent link all work."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from starlette.requests import Request


class Address:
    """A path with its query; links are made by changing some of its members and keeping the rest."""

    def __init__(self, path: str, query: Mapping[str, str | None]) -> None:
        self.path = path
        self.query = {key: value for key, value in query.items() if value}

    @classmethod
    def of(cls, request: Request) -> "Address":
        """The address that was asked for."""
        return cls(request.url.path, dict(request.query_params))

    def change(self, **changes: str | None) -> str:
        """The address with these members instead; None takes a member away."""
        return written(self.path, {**self.query, **changes})

    def without(self, *names: str) -> dict[str, str]:
        """The members but these, for the hidden fields of a form."""
        return {key: value for key, value in self.query.items() if key not in names}


def written(path: str, query: Mapping[str, str | None] | None = None) -> str:
    """A local address with its query encoded; empty members are left out."""
    pairs = [(key, value) for key, value in (query or {}).items() if value]
    return path + (f"?{urlencode(pairs, errors='replace')}" if pairs else "")


def local(target: str | None) -> str:
    """`target` when it is a path of this service, else `/`: what `next` says must lead nowhere else.

    Browsers take `//host`, `/\\host` and `/<tab>/host` for other servers.
    """
    if target is None or not target.startswith("/") or target.startswith(("//", "/\\")):
        return "/"
    return target if target.isascii() and target.isprintable() and "\\" not in target else "/"


def login(request: Request) -> str:
    """Where to log in and then come back to what was asked for."""
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return "/login" if asked == "/" else f"/login?next={quote(asked, safe='/')}"
