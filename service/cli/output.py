"""JSON for machines: one strict document on standard output, or a file that appears whole."""

import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ninfer_core.errors import CannotWrite, Usage

CAMPAIGNS_SCHEMA = "ninfer-gate/campaigns/1"
CONVERSION_SCHEMA = "ninfer-gate/conversion/1"
RECORD_SUFFIX = ".provenance.json"  # of the file that `convert` writes beside its output
INSPECTION_SCHEMA = "ninfer-gate/inspection/1"
KERNELS_SCHEMA = "ninfer-gate/kernels/1"
PROJECTS_SCHEMA = "ninfer-gate/projects/1"
PUSH_SCHEMA = "ninfer-gate/push/1"
RECIPE_SCHEMA = "ninfer-gate/recipe/1"
SELFCHECK_SCHEMA = "ninfer-gate/selfcheck/1"
TARGETS_SCHEMA = "ninfer-gate/targets/1"
TOKENS_SCHEMA = "ninfer-gate/tokens/1"
TRUSTS_SCHEMA = "ninfer-gate/trusts/1"
VECTORS_SCHEMA = "ninfer-gate/vectors-report/1"

DOCUMENT_BEGUN: ContextVar[bool] = ContextVar("document_begun", default=False)  # on standard output

_HEAD_BYTES = 64
_OURS = re.compile(rb'\s*\{\s*"schema"\s*:\s*"ninfer-gate/')


@dataclass(frozen=True, slots=True)
class JsonTarget:
    """Where the document goes; `path` is None for standard output, which then carries nothing else."""

    path: Path | None

    @property
    def alone(self) -> bool:
        """Whether standard output belongs to the document."""
        return self.path is None

    def write(self, document: dict[str, Any] | Iterable[str]) -> None:
        """The document or the pieces of its text; a file gets it whole or not at all. Raises: CannotWrite, Usage."""
        if isinstance(document, dict):
            # ASCII escapes keep names from a file harmless on whatever shows the document.
            document = (json.dumps(document, indent=None if self.alone else 2, allow_nan=False),)
        try:
            if self.path is None:
                _print(document)
            else:
                _replace(Path(os.path.realpath(self.path)), document)
        except OSError as error:
            what = "standard output" if self.path is None else self.path
            raise CannotWrite(f"cannot write {what}: {error.strerror or error}") from error


def json_target(option: str | None, inputs: Iterable[Path] = (), out: str | None = None) -> JsonTarget | None:
    """Where `--json` points, checked before the long work starts. Raises: Usage, CannotWrite."""
    if option is None:
        return None
    if option == "-":
        return JsonTarget(None)
    path = Path(not_empty("--json", option))
    if path.is_dir():
        raise Usage(f"--json {path} is a folder; name a file, or - for standard output")
    whole = Path(os.path.realpath(path))
    folder = whole.parent
    if out:
        entry = Path(os.path.realpath(out))
        if whole == entry:
            raise Usage(f"--json {path} is the file that --out names")
        if folder == entry.parent and whole.name.startswith(f"{entry.name}.part-"):
            raise Usage(f"--json {path} has the name of a part of the file that --out names")
        if folder == entry.parent and whole.name == entry.name + RECORD_SUFFIX:
            raise Usage(f"--json {path} is where the record of the file that --out names goes")
    if not folder.is_dir():
        raise CannotWrite(f"cannot write {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK) and not path.exists():
        raise CannotWrite(f"cannot write {path}: the folder {folder} may not be written")
    for given in inputs:
        with suppress(OSError):
            if path.samefile(given):
                raise Usage(f"--json {path} is an input of this command and would be overwritten")
    try:
        _require_ours(whole)
    except OSError as error:
        raise CannotWrite(f"cannot write {path}: {error.strerror}") from error
    return JsonTarget(path)


def not_empty(what: str, value: str) -> str:
    """`value`, which must not be empty: that would be the current folder. Raises: Usage."""
    if not value:
        raise Usage(f"{what} is empty")
    return value


def new_file(option: str) -> Path:
    """The file that `--out` names. Raises: Usage for what names no file."""
    not_empty("--out", option)
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
        "unlisted_findings": {},
        "versions": versions(),
        "error": {"code": code, "message": message},
    }


def no_document(schema: str, verdict: str, code: str, message: str) -> dict[str, Any]:
    """Any other document when there is no answer."""
    from ninfer_core.verify.report import versions

    error = {"code": code, "message": message}
    return {"schema": schema, "verdict": verdict, "error": error, "versions": versions()}


def _print(pieces: Iterable[str]) -> None:
    if DOCUMENT_BEGUN.get():  # what went wrong since: a second document would spoil the first
        return
    DOCUMENT_BEGUN.set(True)
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError:
        from service.cli.screen import drop_output

        drop_output()  # or the end of the process would fail to write it once more
        raise


def _require_ours(path: Path) -> None:
    """Raises: Usage for a file that no earlier run wrote, OSError when that cannot be seen."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            return
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head and not _OURS.match(head):
            raise Usage(f"{path} exists and is no document of ninfer-gate; it is not overwritten")


def _replace(path: Path, pieces: Iterable[str]) -> None:
    _require_ours(path)  # again: the work may have taken hours
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device: nothing to replace
            with path.open("wb") as file:
                _write_to(file, pieces)
            return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            _write_to(file, pieces)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _write_to(file: BinaryIO, pieces: Iterable[str]) -> None:
    for piece in pieces:
        file.write(piece.encode("ascii"))
    file.write(b"\n")
