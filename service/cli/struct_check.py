"""`ninfer-gate struct check`: a document of struct types, or a file of cases, and every fault of it."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ninfer_core.errors import CannotRead, Usage
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFile, DiskFiles, read
from ninfer_core.schemes.struct_checking import (
    STRUCT_CHECK_SCHEMA,
    CheckedStruct,
    check_document,
    struct_json,
)
from ninfer_core.schemes.structs.conformance import Case, read_cases, verdict_of
from ninfer_core.schemes.structs.document import MAX_DOCUMENT_BYTES, Document, read_document
from ninfer_core.schemes.structs.limits import Limits
from service.cli.failures import Task, guarded
from service.cli.output import JsonTarget, json_target, no_document, not_empty
from service.cli.settings import changed_settings

_CODES = {"passed": 0, "failed": 1, "incomplete": 3}


def check(path: str, payload: str | None, limits: str | None, limit: int | None, json: str | None) -> int:
    """The exit code of one check, after its outcome is shown."""

    def work() -> int:
        inputs = [Path(given) for given in (not_empty("FILE", path), payload) if given]
        target = json_target(json, inputs)
        allowed = changed_settings({"struct_limits": limits}).struct_limits
        text = _content(Path(path), MAX_DOCUMENT_BYTES)
        name = Path(path).name
        cases = read_cases(text, name, allowed)
        if isinstance(cases, tuple):
            if payload is not None:
                raise Usage("--payload is of one value, and this is a file of cases")
            return _cases(path, cases, target, limit)
        checked, unchecked = _one(Path(path), cases or read_document(text, name, allowed), payload, allowed)
        if target is not None:
            target.write({**struct_json(checked), "unchecked": unchecked})
        if target is None or not target.alone:
            from service.cli.struct_view import show_checked

            show_checked(path, checked, unchecked, limit)
        return _CODES[checked.verdict]

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(STRUCT_CHECK_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if json == "-" else None
    return guarded(Task("struct check", f"checking {path}", "Nothing is kept.", failed, first), work)


def _content(path: Path, most: int | None = None) -> bytes:
    with closing(DiskFile(path)) as source:
        if most is not None and source.size > most:
            raise CannotRead(f"{path} has {source.size:,} bytes, and no document has more than {most:,}")
        return read(source, 0, source.size)


def _one(
    path: Path, document: Document | Findings, payload: str | None, limits: Limits
) -> tuple[CheckedStruct, str | None]:
    """What is to be said of a document, and what of it could not be checked."""
    if isinstance(document, Findings):
        return CheckedStruct(tuple(document)), None
    if payload is not None:
        if document.value is None:
            raise Usage("--payload is of a value, and the document has none (`root` or `value`)")
        return check_document(document, _content(Path(payload)), limits), None
    if document.payload_file is None:
        return check_document(document, limits=limits), None
    with DiskFiles(path.parent) as files:  # a name out of a document leads to its own folder only
        try:
            source = files.open(document.payload_file)
            return check_document(document, read(source, 0, source.size), limits), None
        except CannotRead as missing:
            # What the document expects of the elements goes unchecked with them.
            unseen = replace(document, expected=replace(document.expected, leaves=None))
            return check_document(unseen, limits=limits), f"the payload: {missing}"


def _cases(path: str, cases: tuple[Case, ...], target: JsonTarget | None, limit: int | None) -> int:
    from ninfer_core.verify.report import finding_json, versions

    verdict = verdict_of(cases)
    if target is not None:
        target.write(
            {
                "schema": STRUCT_CHECK_SCHEMA,
                "verdict": verdict,
                "cases": [
                    {
                        "name": case.name,
                        "expected": case.expected or None,
                        "outcome": case.outcome,
                        "findings": [finding_json(finding) for finding in case.findings],
                    }
                    for case in cases
                ],
                "versions": versions(),
            }
        )
    if target is None or not target.alone:
        from service.cli.struct_view import show_cases

        show_cases(path, cases, limit)
    return _CODES[verdict]
