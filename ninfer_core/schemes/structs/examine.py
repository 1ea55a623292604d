"""What a document says, checked: its value, model or static type, and whether its own expectations hold."""

from dataclasses import dataclass, replace

from ninfer_core.findings import Finding
from ninfer_core.schemes.structs.check import checked
from ninfer_core.schemes.structs.document import Document
from ninfer_core.schemes.structs.expectations import compare
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.models import check_model, check_names, check_static
from ninfer_core.schemes.structs.plans import LeafPlan, unroll


@dataclass(frozen=True, slots=True)
class Examination:
    """The answer: every fault, and of a value whose type has none its size and its leaves."""

    findings: tuple[Finding, ...]
    size_bits: int | None = None
    leaves: tuple[LeafPlan, ...] = ()

    @property
    def size_bytes(self) -> int | None:
        """The size in bytes, where the bits fill them."""
        return None if self.size_bits is None or self.size_bits % 8 else self.size_bits // 8


def declared_by(document: Document) -> Declared | None:
    """The type that the document's value selects, with its counts; None without a value."""
    value = document.value
    if value is None:
        return None
    if value.declaration is None:
        return Declared(document.model, value.type, value.dims)
    return Declared((*document.model, value.declaration), len(document.model), value.dims)


def examine(document: Document, limits: Limits = LIMITS) -> Examination:
    """Every finding about a document; one that only describes a situation in words has none."""
    found = _examined(document, limits)
    if found.findings or document.described:
        return found
    faults = Faults()
    expected = document.expected
    if expected.code is not None:
        faults.add("expectation_differs", "code", "nothing is wrong here.", expected.code, "no fault")
    if document.value is None:
        for member in ("size_bits", "size_bytes", "leaves"):
            if getattr(expected, member) is not None:
                message = "only a value has it, and the document selects none."
                faults.add("expectation_differs", member, message, "root or value", "nothing")
    return replace(found, findings=tuple(faults.findings))


def _examined(document: Document, limits: Limits) -> Examination:
    findings: list[Finding] = []
    if document.named:
        findings += check_names(document.model)
    if document.static is not None:
        findings += check_static(document.static, document.model or None)
    if document.value is None:
        if any(declaration.type is not None for declaration in document.model):
            findings += check_model(document.model, limits)
        return Examination(tuple(findings))
    value = document.value
    found, laid = checked(document.model, value, limits, document.inline_bytes)
    findings += found.items
    if laid is None:
        return Examination(tuple(findings))
    plans = unroll(laid)
    if not findings:
        held = value.data if len(value.data) == document.inline_bytes else None
        faults = Faults()
        compare(document.expected, laid.bits, plans, held, limits, faults)
        findings += faults.findings.items
    return Examination(tuple(findings), laid.bits, plans)
