"""How a fault of a struct type is said: a finding `struct.<code>` and its place, or an exception that holds them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ninfer_core.errors import NinferError
from ninfer_core.findings import Finding, Findings


class StructFault(NinferError):
    """A struct type or payload that the question cannot be answered for; `findings` say why, in the stated order."""

    code = "struct_fault"

    def __init__(self, findings: Findings) -> None:
        first = findings.items[0]
        more = len(findings) - 1
        super().__init__(f"{first.code}: {first.message}" + (f" (and {more} more)" if more else ""))
        self.findings = findings

    @property
    def finding(self) -> Finding:
        """The first fault."""
        return self.findings.items[0]


@dataclass(slots=True)
class Faults:
    """Collects faults."""

    findings: Findings = field(default_factory=Findings)

    def add(
        self,
        code: str,
        place: str,
        message: str,
        expected: object = "",
        found: object = "",
        count: int = 1,
        **where: Any,
    ) -> None:
        """One finding `struct.<code>` at a place of the document."""
        self.findings.add(
            f"struct.{code}",
            f"{place}: {message}",
            where={"path": place, **where},
            expected=expected,
            found=found,
            count=count,
        )

    def take(self, findings: Iterable[Finding], value: str = "value") -> None:
        """Take over findings of one value; `value` is its place in a larger document."""
        moved = Findings()
        for finding in findings:
            path = str(finding.where["path"])
            if path.startswith("value") and value != "value":
                place = value + path.removeprefix("value")
                message = place + finding.message.removeprefix(path)
                finding = replace(finding, where={**finding.where, "path": place}, message=message)
            moved.items.append(finding)
        self.findings.extend(moved)

    def settle(self) -> None:
        """Raises: StructFault, with all that was added, if anything was."""
        if self.findings.items:
            raise StructFault(self.findings)


def fault(code: str, place: str, message: str, expected: object = "", found: object = "") -> StructFault:
    """The exception for one fault."""
    faults = Faults()
    faults.add(code, place, message, expected, found)
    return StructFault(faults.findings)
