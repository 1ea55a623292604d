"""Fixtures: the material once, and services with and without a worker, on each database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import KINDS, postgres_server, postgresql_url
from tests.s3 import s3, s3_server, s3_settings
from tests.worker.material import Material, make
from tests.worker.rig import Rig, rig

__all__ = [
    "postgres_server",
    "postgresql_url",
    "s3",
    "s3_server",
    "s3_settings",
]  # fixtures that others here ask for


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    """A checkpoint, its recipe, and what the command line makes of them."""
    return make(tmp_path_factory.mktemp("material"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A service on SQLite with one worker, which the tests of a module leave as it is."""
    with rig(tmp_path_factory.mktemp("shared") / "data") as made:
        made.started()
        yield made


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Rig]:
    """A service on SQLite without a worker."""
    with rig(tmp_path / "data") as made:
        yield made


@pytest.fixture(params=KINDS)
def disturbed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """A service without a worker, on SQLite and on PostgreSQL, whose jobs have some dozens of shards."""
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with rig(tmp_path / "data", url, shard_bytes=400_000) as made:
        yield made
