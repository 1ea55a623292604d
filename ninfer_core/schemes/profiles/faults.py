"""Faults of profiles: collected with a code each, raised together."""

from dataclasses import dataclass, field

from ninfer_core.findings import Findings
from ninfer_core.schemes.run import SchemeRefused


@dataclass(slots=True)
class Faults:
    """What is wrong with one profile, or with a struct type read as one; `name` is the declaration under judgement."""

    name: str
    findings: Findings = field(default_factory=Findings)

    def add(self, code: str, part: str, message: str, expected: object = "", found: object = "") -> None:
        """One finding `profile.<code>` about a parameter."""
        self.findings.add(
            f"profile.{code}",
            f"{part}: {message}" if part else message,
            where={"declaration": self.name} | ({"part": part} if part else {}),
            expected=expected,
            found=found,
        )

    @property
    def any(self) -> bool:
        """Whether anything was added."""
        return bool(self.findings.items)

    def settle(self) -> None:
        """Raises: SchemeRefused, with all that was added, if anything was."""
        if self.any:
            raise SchemeRefused(self.name, self.findings)


def refusal(
    name: str, code: str, part: str, message: str, expected: object = "", found: object = ""
) -> SchemeRefused:
    """The exception for one fault."""
    faults = Faults(name)
    faults.add(code, part, message, expected, found)
    return SchemeRefused(name, faults.findings)
