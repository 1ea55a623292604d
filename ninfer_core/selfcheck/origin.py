"""Which code foreign kernels are: the digest of their files. What these load in turn is not seen."""

import hashlib
import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from ninfer_core.errors import CannotRead
from ninfer_core.identity import canonical_digest


def code_digest(kind: str, target: str) -> str:
    """Of a shared library, or of the package or module that an object is in. Raises: CannotRead."""
    return _module_digest(target.partition(":")[0]) if kind == "python" else _file_digest(Path(target))


def _module_digest(module: str) -> str:
    # Nothing is imported here, and the path is that of the process which will.
    spec = PathFinder.find_spec(module.partition(".")[0], [os.getcwd(), *sys.path])
    places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin or ""]
    files = sorted({file for place in places for file in _sources(Path(place))})
    return canonical_digest({"files": [_file_digest(file) for file in files]})


def _sources(place: Path) -> Iterable[Path]:
    if place.is_dir():
        return (file for file in place.rglob("*") if file.suffix in (".py", ".so") and file.is_file())
    return (place,) if place.is_file() else ()


def _file_digest(path: Path) -> str:
    try:
        return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}") from error
