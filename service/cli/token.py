"""`ninfer-gate token`: tokens of a project, made, listed and ended on the database itself."""

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ninfer_core.errors import Usage
from service.cli.failures import Task, guarded
from service.cli.output import TOKENS_SCHEMA, JsonTarget, json_target
from service.cli.records import existing
from service.text import UNKNOWN, clean

if TYPE_CHECKING:
    from service.records.models import Token

_MOST_NAME = 100
_PAGE = 200
_TITLES = ("id", "kind", "name", "may", "created", "expires", "last used")
_NAME, _SPARE = 2, (4, 1, 6)  # the name may be shortened, and these columns give way, in a narrow window


@dataclass(frozen=True, slots=True)
class Asked:
    """A token as the command line asks for it."""

    project: str
    name: str
    scopes: tuple[str, ...]
    expires_in_days: int | None


def create(changes: dict[str, Any], asked: Asked) -> int:
    """0 after the token is printed."""
    task = Task("token create", "making a token", "A token that was not printed opens nothing that you know.")
    return guarded(task, lambda: _create(changes, asked))


def list_tokens(changes: dict[str, Any], project: str, json: str | None) -> int:
    """0 after the tokens are listed."""
    task = Task("token list", "listing the tokens", "Nothing was changed.")
    return guarded(task, lambda: _list(changes, project, json_target(json)))


def revoke(changes: dict[str, Any], project: str, id_: str) -> int:
    """0 after the token opens nothing any more."""
    task = Task("token revoke", "ending a token", "The token stands unless the command said that it ended.")
    return guarded(task, lambda: _revoke(changes, project, id_))


def _create(changes: dict[str, Any], asked: Asked) -> int:
    from service import auth, projects
    from service.records.types import now
    from service.scopes import spelled, widened

    if not asked.name.strip() or len(asked.name) > _MOST_NAME:
        raise Usage(f"the name of a token has 1 to {_MOST_NAME} characters")
    try:
        scopes = widened(asked.scopes)
    except ValueError as error:
        raise Usage(str(error)) from None
    days = asked.expires_in_days
    with existing(changes) as database:
        project = projects.named(database, asked.project)
        expires = None if days is None else now() + timedelta(days=days)
        secret = auth.new_token(database, project.id, scopes, name=asked.name, expires_at=expires)
        ends = "never expires" if expires is None else f"expires {_day(expires)}"
        told = f"A token of project {project.name}, scopes {spelled(scopes)}, {ends}. It is told this once:"
        print(told, file=sys.stderr)
        print(secret)
    return 0


def _list(changes: dict[str, Any], project: str, target: JsonTarget | None) -> int:
    from service import projects
    from service.cli.screen import aligned, console, fitted, show_left_out
    from service.records import tokens

    rows: list[Token] = []
    with existing(changes) as database:
        found = projects.named(database, project)
        cursor = None
        while True:
            with database.read() as session:
                page = tokens.page(session, found.id, limit=_PAGE, cursor=cursor)
            rows += page.items
            cursor = page.next
            if cursor is None:
                break
    if target is not None:
        target.write(
            {"schema": TOKENS_SCHEMA, "project": found.name, "tokens": [_document(row) for row in rows]}
        )
        if target.alone:
            return 0
    out = console()
    kept, right = fitted([_TITLES, *map(_line, rows)], (False,) * len(_TITLES), out, _NAME, _SPARE)
    for index, line in enumerate(aligned(kept, right, gap=2)):
        out.print(f"  {line}", style="dim" if index == 0 else None)
    show_left_out(out, _TITLES, kept[0])
    return 0


def _revoke(changes: dict[str, Any], project: str, id_: str) -> int:
    from service import auth, projects, tokens
    from service.errors import TokenNotFound

    with existing(changes) as database:
        found = projects.named(database, project)
        try:
            tokens.revoke(database, found.id, auth.COMMAND_LINE, id_)
        except TokenNotFound:
            # What was given may be the token itself, put where its id belongs: it is not said again.
            raise Usage(
                "this project has no token of that id; `ninfer-gate token list` shows the ids"
            ) from None
    print("It opens nothing any more, and no session that was opened with it does.", file=sys.stderr)
    return 0


def _line(row: "Token") -> tuple[str, ...]:
    from service.scopes import widest

    moments = (row.created_at, row.expires_at, row.last_used_at)
    return (row.id, row.kind, clean(row.name), " ".join(widest(row.scopes.split())), *map(_date, moments))


def _date(moment: datetime | None) -> str:
    return UNKNOWN if moment is None else f"{moment:%Y-%m-%d}"


def _day(moment: datetime | None) -> str:
    return UNKNOWN if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def _document(row: "Token") -> dict[str, Any]:
    times = {
        name: None if (moment := getattr(row, name)) is None else moment.isoformat()
        for name in ("created_at", "expires_at", "last_used_at")
    }
    return {
        "id": row.id,
        "kind": row.kind,
        "name": row.name,
        "scopes": row.scopes.split(),
        "created_by": row.created_by,
        **times,
    }
