"""A service with two projects: everything that the examples speak of lies in the first, nothing in the second."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from service import auth, tokens
from service.api.openapi import operations
from service.records.types import now
from tests.service.api.conftest import _quiet, api, fresh
from tests.service.api.world import World, seed, world
from tests.service.records.build import OTHER, P, other_project

__all__ = ["_quiet", "api", "fresh"]

OFTEN = {"rate_limit": "1000000/second", "login_rate_limit": "1000000/second"}


@dataclass(frozen=True)
class Tenants:
    """The service, its document, and the tokens that it knows or no longer knows."""

    world: World
    document: dict[str, Any]
    tokens: dict[str, str | None]  # by what they are
    other: str  # for everything, of the other project
    http: httpx.Client  # without a token

    def call(self, token: str | None, method: str, path: str, **more: Any) -> httpx.Response:
        """A request with this token, or with none."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= more.pop("headers", {})
        return self.http.request(method, path, headers=headers, **more)


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Tenants]:
    """Two projects on SQLite."""
    folder = tmp_path_factory.mktemp("tenants")
    shutil.copyfile(sqlite_template, folder / "records.sqlite")
    with world(folder / "data", f"sqlite:///{folder / 'records.sqlite'}", **OFTEN) as made:
        seed(made)
        with tenants_of(made) as known:
            yield known


@contextmanager
def tenants_of(made: World) -> Iterator[Tenants]:
    """Tokens of every kind, and another project."""
    database = made.parts.database
    known: dict[str, str | None] = {
        scope: auth.new_token(database, P, (scope,)) for scope in ("read", "submit", "gate", "admin")
    }
    known |= {"none": None, "bad": f"ng_{'x' * 43}", "revoked": auth.new_token(database, P)}
    caller = auth.authenticate(database, known["revoked"])
    tokens.revoke(database, P, "test", caller.token_id or "")
    with database.write() as session:
        other_project(session)
    other = auth.new_token(database, OTHER)
    # The last one: making one forgets those that have expired.
    known["expired"] = auth.new_token(database, P, expires_at=now() - timedelta(seconds=1))
    document = made.call("GET", "/openapi.json").json()
    with httpx.Client(base_url=made.address, timeout=30) as http:
        yield Tenants(made, document, known, other, http)


def path_of(tenants: Tenants, path: str, **others: str) -> str:
    """An address with the ids of the examples, or with others by the name of the parameter."""
    for one, _, operation in operations(tenants.document):
        if one == path:
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    name = parameter["name"]
                    given = (
                        others.get(name)
                        or (parameter["schema"].get("examples") or [parameter.get("example")])[0]
                    )
                    path = path.replace(f"{{{name}}}", given)
    return path
