"""The arrows between the rooms: who imports whom, read from the syntax trees, and what a listing must not load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("ninfer_core", "service", "worker")
FORBIDDEN = {
    "ninfer_core": ("service", "worker"),
    "service": ("worker",),
    "worker": ("service.api", "service.dashboard", "service.cli"),
}
# Within `service`: faces know nothing of one another, and what is below knows nothing of the faces. `app` joins them.
FACES = ("service.api", "service.dashboard", "service.cli")
JOINTS = ("service/api/app.py", "service/cli/serve.py")
ENGINE_ROOMS = ("service/queue.py", "worker/runtime.py")
COMPILERS = ("numba", "llvmlite")
COMPILED_ROOMS = (ROOT / "ninfer_core" / "kernels", ROOT / "ninfer_core" / "schemes" / "compiled")


def modules() -> list[Path]:
    """Every module of the packages that exist."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every module that the file imports, at its top or inside a function; relative imports made absolute."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: -node.level]) + "." if node.level else ""
            module = base + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def within(name: str, room: str) -> bool:
    """Whether a dotted name is the room or something in it."""
    return name == room or name.startswith(f"{room}.")


def test_there_is_something_to_read() -> None:
    assert len(modules()) > 50


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_follow_the_arrows(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    names = list(imported(path))
    wrong = [name for name in names for room in FORBIDDEN[package] if within(name, room)]
    assert not wrong, f"{package} must not import {wrong}"
    if not any(room in path.parents for room in COMPILED_ROOMS):
        compilers = [name for name in names for compiler in COMPILERS if within(name, compiler)]
        assert not compilers, (
            "compiled code lives in ninfer_core/kernels and ninfer_core/schemes/compiled alone"
        )


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_faces_of_the_service_stand_apart(path: Path) -> None:
    place = path.relative_to(ROOT)
    if place.parts[0] != "service" or place.as_posix() in JOINTS:
        return
    own = ".".join(place.parts[:2])
    wrong = [name for name in imported(path) for face in FACES if face != own and within(name, face)]
    assert not wrong, f"{place} must not import {wrong}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_two_modules_know_the_durable_engine(path: Path) -> None:
    if path.relative_to(ROOT).as_posix() not in ENGINE_ROOMS:
        assert not [name for name in imported(path) if within(name, "dbos")]


@pytest.mark.parametrize(
    "module",
    [
        "ninfer_core.opening",
        "ninfer_core.containers.ninfer",
        "ninfer_core.sources",
        "ninfer_core.recipes",
        "ninfer_core.verify",
        "ninfer_core.verify.report",
        "ninfer_core.rejected_names",
        "service.cli.app",
        "service.cli.inspect",
        "service.cli.inspection_view",
        "service.cli.formats",
        "service.cli.explain",
        "service.cli.schemes_view",
    ],
)
def test_listing_loads_no_compiler(module: str) -> None:
    script = f"import sys, {module}; print(*[n for n in {COMPILERS!r} if n in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == ""


def test_what_reads_no_payload_loads_no_numpy() -> None:
    """Its import takes longer than all that these commands do."""
    file = ROOT / "tests/vectors/golden/v1/v1_seven_formats.ninfer"
    commands = [["version"], ["verify", "--help"], ["formats"], ["inspect", str(file)]]
    script = (
        f"import sys, service.cli.app as a; print([a.run(c) for c in {commands!r}], 'numpy' in sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.splitlines()[-1] == "[0, 0, 0, 0] False"
