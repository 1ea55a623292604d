"""What a finding code means: data that `explain`, the documentation and every report share."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "advisory"]


@dataclass(frozen=True, slots=True)
class Definition:
    """One stable code, `check.slug`; `rule` is its place in the check catalogue where there is one."""

    name: str
    rule: str | None
    severity: Severity
    meaning: str
    causes: str
    remedy: str
    where: str = ""  # keys of `where` beyond the common ones
    severity_by: str | None = None  # what may decide the severity instead, finding by finding

    @property
    def check(self) -> str:
        """The check that gives this finding."""
        return self.name.partition(".")[0]


def error(name: str, rule: str | None, meaning: str, causes: str, remedy: str, where: str = "") -> Definition:
    """A finding that fails a verification."""
    return Definition(name, rule, "error", meaning, causes, remedy, where)


def advisory(
    name: str, rule: str | None, meaning: str, causes: str, remedy: str, where: str = ""
) -> Definition:
    """A finding that a person should see and that fails nothing."""
    return Definition(name, rule, "advisory", meaning, causes, remedy, where)
