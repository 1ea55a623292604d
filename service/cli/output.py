"""JSON for machines: one strict document on standard output, or a file that appears whole."""

import json
import os
import secrets
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ninfer_core.errors import CannotWrite, Usage

CONVERSION_SCHEMA = "ninfer-gate/conversion/1"
INSPECTION_SCHEMA = "ninfer-gate/inspection/1"
FORMATS_SCHEMA = "ninfer-gate/formats/1"


@dataclass(frozen=True, slots=True)
class JsonTarget:
    """Where the document goes; `path` is None for standard output, which then carries nothing else."""

    path: Path | None

    @property
    def alone(self) -> bool:
        """Whether standard output belongs to the document."""
        return self.path is None

    def write(self, document: dict[str, Any]) -> None:
        """The document, whole or not at all. Raises: CannotWrite."""
        # ASCII escapes keep names from a file harmless on whatever shows the document.
        text = json.dumps(document, indent=None if self.alone else 2, allow_nan=False) + "\n"
        if self.path is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            try:
                _replace(Path(os.path.realpath(self.path)), text.encode("ascii"))
            except OSError as error:
                raise CannotWrite(f"cannot write {self.path}: {error.strerror}") from error


def json_target(option: str | None, inputs: Iterable[Path] = ()) -> JsonTarget | None:
    """Where `--json` points, checked before the long work starts. Raises: Usage, CannotWrite."""
    if option is None:
        return None
    if option == "-":
        return JsonTarget(None)
    path = Path(option)
    if path.is_dir():
        raise Usage(f"--json {path} is a folder; name a file, or - for standard output")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise CannotWrite(f"cannot write {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK) and not path.exists():
        raise CannotWrite(f"cannot write {path}: the folder {folder} may not be written")
    for given in inputs:
        with suppress(OSError):
            if path.samefile(given):
                raise Usage(f"--json {path} is an input of this command and would be overwritten")
    return JsonTarget(path)


def new_file(option: str) -> Path:
    """The file that `--out` names. Raises: Usage for what names no file."""
    if option == "-":
        raise Usage("--out names a file; standard output is not supported (./- is a file of that name)")
    if option.endswith(os.sep) or Path(option).is_dir():
        raise Usage(f"--out {option} is a folder; name the file in it")
    return Path(option)


def no_report(verdict: str, code: str, message: str) -> dict[str, Any]:
    """The report when nothing could be checked: its members, empty, and why."""
    from ninfer_core.verify.report import SCHEMA, coverage, versions

    return {
        "schema": SCHEMA,
        "verdict": verdict,
        "artifact": {
            "kind": None,
            "revision": None,
            "identity": {"model_id": None, "weights_id": None},
            "name": None,
            "digest": None,
            "content_root": None,
            "bytes": 0,
            "files": [],
        },
        "recipe": None,
        "checks": [],
        "coverage": coverage(()),
        "objects": [],
        "findings": [],
        "versions": versions(),
        "error": {"code": code, "message": message},
    }


def no_document(schema: str, verdict: str, code: str, message: str) -> dict[str, Any]:
    """Any other document when there is no answer."""
    from ninfer_core.verify.report import versions

    error = {"code": code, "message": message}
    return {"schema": schema, "verdict": verdict, "error": error, "versions": versions()}


def _replace(path: Path, content: bytes) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device: nothing to replace
            path.write_bytes(content)
            return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
