"""A file of cases, accepted and refused ones, each a document of its own: what came of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core.documents.fields import Faults
from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.structs.document import Document, parse_text, read_members
from ninfer_core.schemes.structs.examine import examine
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.strict_json import Json, Members

Outcome = Literal["passed", "failed", "described"]
_LISTS: Final = ("accept", "reject")


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `expected` is a code, or empty where none is; `described` when only words say what to build."""

    name: str
    expected: str
    outcome: Outcome
    findings: tuple[Finding, ...]


def verdict_of(cases: Sequence[Case]) -> Literal["passed", "failed", "incomplete"]:
    """Of all of them; `incomplete` where none of them could be judged."""
    outcomes = {case.outcome for case in cases}
    if "failed" in outcomes:
        return "failed"
    return "passed" if "passed" in outcomes else "incomplete"


def is_conformance(root: Json) -> bool:
    """Whether a parsed document is a file of cases."""
    return isinstance(root, Members) and any(name in root for name in _LISTS)


def read_cases(text: bytes, file: str, limits: Limits = LIMITS) -> tuple[Case, ...] | Findings | None:
    """The cases of a file, judged; None where it is one document, findings where it is no JSON object."""
    findings = Findings()
    root = parse_text(text, file, findings)
    if root is None:
        return findings
    return judge_cases(root, file, limits) if is_conformance(root) else None


def judge_cases(root: Json, file: str, limits: Limits = LIMITS) -> tuple[Case, ...] | Findings:
    """A refused case passes when its first finding has the code that it names, an accepted one without any.

    A refused case has to name one, and no case leaves its payload in a file of its own, which nobody reads here.
    """
    findings = Findings()
    for name in root:
        if name not in _LISTS or not isinstance(root[name], list):
            findings.add(
                "struct.member_unexpected",
                f"$.{name}: a file of cases has lists accept and reject.",
                where={"file": file, "path": "$", "member": name},
                expected=" and ".join(_LISTS),
                found=name,
            )
    if not findings.items and not any(root[name] for name in root):
        findings.add(
            "struct.member_missing",
            "$: a file of cases holds none.",
            where={"file": file, "path": "$", "member": _LISTS[0]},
            expected="a case",
            found="nothing",
        )
    if findings.items:
        return findings
    return tuple(
        _judge(case, file, limits, kind == "reject", (kind, index))
        for kind in _LISTS
        for index, case in enumerate(root.get(kind, ()))
    )


def _judge(case: Json, file: str, limits: Limits, refused: bool, path: tuple[str | int, ...]) -> Case:
    code = case.get("code") if isinstance(case, Members) else None
    name = case.get("name") if isinstance(case, Members) else None
    expected = f"struct.{code}" if refused and isinstance(code, str) else ""
    document = read_members(case, file, limits, path)
    found = tuple(document) if isinstance(document, Findings) else examine(document, limits).findings
    if not isinstance(document, Findings):
        found = (*_unjudged(document, file, refused, path), *found)
    outcome: Outcome = "passed" if (found[0].code if found else "") == expected else "failed"
    if not isinstance(document, Findings) and document.described:
        outcome = "described"
    return Case(name if isinstance(name, str) else "", expected, outcome, found)


def _unjudged(document: Document, file: str, refused: bool, path: tuple[str | int, ...]) -> Findings:
    """What keeps a case that is a document from saying anything."""
    findings = Findings()
    faults = Faults(file, findings, "struct")
    if document.payload_file is not None:
        message = "a case holds its payload itself."
        faults.add("member_unexpected", path, message, "payload_hex", "payload_file", member="payload_file")
    if refused and document.expected.code is None:
        message = "a refused case names the code of its fault."
        faults.add("member_missing", path, message, "code", "nothing", member="code")
    return findings
