"""Which code foreign kernels are: the digest of their files. What these load in turn is not seen."""

import hashlib
import os
import re
import sys
from collections.abc import Iterable
from difflib import SequenceMatcher
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from ninfer_core.errors import CannotRead
from ninfer_core.formats import FORMATS
from ninfer_core.identity import canonical_digest

_WORD: Final = re.compile(rb"(?<![\w.-])[A-Z][A-Z0-9_.-]{4,40}(?![\w.-])")
_NEAR: Final = 0.88  # more than one other character in a name of ten


def code_digest(kind: str, target: str) -> str:
    """Of a shared library, or of the package or module that an object is in. Raises: CannotRead."""
    return _module_digest(target.partition(":")[0]) if kind == "python" else _file_digest(Path(target))


def words_like(kind: str, target: str, names: Iterable[str]) -> tuple[str, ...]:
    """Words in the code that are nearly one of some names, and no name of a format: misspelt ones, perhaps."""
    files = _module_files(target.partition(":")[0]) if kind == "python" else [Path(target)]
    words = {word.decode() for file in files for word in _WORD.findall(file.read_bytes())} - {
        fmt.name for fmt in FORMATS
    }
    wanted = [_plain(name) for name in names]
    return tuple(sorted(word for word in words if any(_near(_plain(word), name) for name in wanted)))


def _plain(word: str) -> str:
    return re.sub("[^A-Z0-9]", "", word.upper())


def _near(word: str, name: str) -> bool:
    return abs(len(word) - len(name)) <= 2 and SequenceMatcher(None, word, name).ratio() > _NEAR


def _module_digest(module: str) -> str:
    return canonical_digest({"files": [_file_digest(file) for file in _module_files(module)]})


def _module_files(module: str) -> list[Path]:
    # Nothing is imported here, and the path is that of the process which will.
    spec = PathFinder.find_spec(module.partition(".")[0], [os.getcwd(), *sys.path])
    places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
    return sorted({file for place in places for file in _sources(Path(place))})


def _sources(place: Path) -> Iterable[Path]:
    if place.is_dir():
        return (file for file in place.rglob("*") if file.suffix in (".py", ".so") and file.is_file())
    return (place,) if place.is_file() else ()


def _file_digest(path: Path) -> str:
    try:
        return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}") from error
