"""The room of compiled decoders: a cache of its own, and nothing in a kernel that its folder's name does not tell of."""

import ast
from pathlib import Path

import pytest

from ninfer_core.kernels import cache as kernels
from ninfer_core.schemes import compiled
from ninfer_core.schemes.compiled import cache

ROOM = Path(compiled.__file__).parent
FOREIGN = {
    "ninfer_core.kernels.cache",
    "ninfer_core.kernels.sources",
}  # which the digest holds, or which compile nothing


def test_decoders_are_kept_apart_from_the_kernels():
    own = cache.cache_directory()
    if own is None:
        pytest.skip("no cache folder can be written here")
    assert own.name.startswith("schemes-")
    assert own != kernels.cache_directory()


def test_every_source_and_the_compiling_itself_are_in_the_name(monkeypatch):
    digested = []
    monkeypatch.setattr(cache, "digest_of", lambda files: digested.extend(files) or "")
    cache.sources_digest()
    assert set(ROOM.glob("*.py")) < set(digested)
    assert Path(kernels.__file__) in digested


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.stem)
def test_no_constant_of_another_package_is_compiled_in(path):
    """It would stay in the cache when that package changes; tables are arguments."""
    tree = ast.parse(path.read_text())
    typed = {id(node) for block in ast.walk(tree) if isinstance(block, ast.If) for node in ast.walk(block)}
    taken = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and id(node) not in typed and node.module is not None
    }
    own = {module for module in taken if module.startswith("ninfer_core")}
    assert {module for module in own if not module.startswith("ninfer_core.schemes.compiled")} <= FOREIGN
