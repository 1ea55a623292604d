"""A seeded service, shared by every test that only looks at it, and an empty one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import structlog

from tests.service.dashboard.app import Served, served
from tests.service.dashboard.scene import Scene, scene
from tests.service.dashboard.seed import Seed


@pytest.fixture(scope="package", autouse=True)
def _quiet() -> Iterator[None]:
    """Events are kept short: printing the locals of a traceback takes half a minute."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
    )
    yield
    structlog.reset_defaults()


@dataclass(frozen=True, slots=True)
class World(Served):
    """A service and what is in it."""

    scene: Scene


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served(tmp_path_factory.mktemp("pages")) as made:
        seeded = scene(Seed(made.parts.database), made.parts.blobs.scratch)
        yield World(made.parts, made.address, made.token, seeded)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def visitor(world: World) -> Iterator[httpx.Client]:
    with world.visitor() as client:
        yield client
