"""One service for all tests of a module, with everything that the examples speak of."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.service.api.world import World, seed, world


@pytest.fixture(scope="package", autouse=True)
def _quiet() -> Iterator[None]:
    """Events are thrown away: printing the locals of every provoked traceback takes a second each."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        logger_factory=structlog.ReturnLoggerFactory(),
    )
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[World]:
    """A seeded service on SQLite."""
    folder = tmp_path_factory.mktemp("api")
    shutil.copyfile(sqlite_template, folder / "records.sqlite")
    with world(folder / "data", f"sqlite:///{folder / 'records.sqlite'}") as made:
        seed(made)
        yield made


@pytest.fixture
def fresh(tmp_path: Path, database_url: str) -> Iterator[World]:
    """An empty service, on each kind of database."""
    with world(tmp_path / "data", database_url) as made:
        yield made
