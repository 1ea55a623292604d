"""The answer about a document of struct types as one document: faults, size, leaves. For command line, service and jobs alike."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.structs.document import Document, read_document
from ninfer_core.schemes.structs.examine import Examination, examine
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.plans import LeafPlan

STRUCT_CHECK_SCHEMA: Final = "ninfer-gate/struct-check/1"
MOST_LEAVES: Final = 1_000  # that the answer lists
_UNREAD: Final = "$"  # a document whose file has no name of its own


@dataclass(frozen=True, slots=True)
class CheckedStruct:
    """What is to be said of one document; without an examination it could not be read, and `findings` say why."""

    findings: tuple[Finding, ...]
    document: Document | None = None
    examination: Examination | None = None
    payload_bytes: int | None = None  # of the payload that was given, beside the document or in it

    @property
    def unseen(self) -> bool:
        """Whether the document names a payload that nobody gave."""
        return self.document is not None and self.document.payload_file is not None

    @property
    def empty(self) -> bool:
        """Whether the document has nothing to check: no type, no value, or a situation in words alone."""
        document = self.document
        return document is not None and not (document.model or document.value or document.static)

    @property
    def verdict(self) -> Literal["passed", "failed", "incomplete"]:
        """`failed` with any error, `incomplete` where its payload was not looked at, or nothing was."""
        if any(one.severity == "error" for one in self.findings):
            return "failed"
        return "incomplete" if self.unseen or self.empty else "passed"


def check_text(
    text: bytes, file: str = _UNREAD, payload: bytes | None = None, limits: Limits = LIMITS
) -> CheckedStruct:
    """Read a document and examine it; `payload` stands for the one that it has or names."""
    document = read_document(text, file, limits)
    if isinstance(document, Findings):
        return CheckedStruct(tuple(document))
    return check_document(document, payload, limits)


def check_document(
    document: Document, payload: bytes | None = None, limits: Limits = LIMITS
) -> CheckedStruct:
    """Examine a document that was read; `payload` stands for the one that it has or names."""
    if payload is None:
        examination = examine(document, limits)
        return CheckedStruct(examination.findings, document, examination, document.inline_bytes)
    findings = Findings()
    if document.value is None:
        message = "A payload was given, and the document selects no type that it could be of."
        found = f"{len(payload):,} bytes"
        findings.add("struct.payload_source", message, expected="a value, or root and dims", found=found)
    else:
        value = replace(document.value, data=payload, external=None)
        document = replace(document, value=value, inline_bytes=len(payload), payload_file=None)
    examination = examine(document, limits)
    return CheckedStruct((*findings, *examination.findings), document, examination, len(payload))


def struct_json(checked: CheckedStruct) -> dict[str, Any]:
    """The answer as strict JSON values."""
    from ninfer_core.verify.report import finding_json, versions

    found = checked.examination
    sized = found is not None and found.size_bits is not None
    return {
        "schema": STRUCT_CHECK_SCHEMA,
        "verdict": checked.verdict,
        "name": checked.document.name if checked.document is not None else "",
        "size_bits": found.size_bits if found is not None else None,
        "size_bytes": found.size_bytes if found is not None else None,
        "payload_bytes": checked.payload_bytes,
        "leaves": [_leaf(leaf) for leaf in found.leaves[:MOST_LEAVES]]
        if found is not None and sized
        else None,
        "leaf_count": len(found.leaves) if found is not None and sized else None,
        "findings": [finding_json(one) for one in checked.findings],
        "versions": versions(),
    }


def _leaf(leaf: LeafPlan) -> dict[str, Any]:
    return {
        "path": leaf.path,
        "type": leaf.label,
        "shape": list(leaf.shape),
        "offset_bits": leaf.offset_bits,
        "strides_bits": list(leaf.strides_bits),
        "constant": leaf.constant is not None,
    }
