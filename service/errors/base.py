"""What every refusal has: a stable code, an HTTP status, words for people, and the places that are wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ninfer_core.errors import NinferError


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request: `place` is body, query, path or header; `path` says where in it."""

    place: str
    path: str
    message: str

    @property
    def where(self) -> dict[str, str]:
        """The place alone."""
        return {"in": self.place, "path": self.path}


class ServiceError(NinferError):
    """Root of every refusal; `faults` are its places, `findings` those of a document, `facts` further members."""

    code: str = "internal"
    status: int = 500
    title: str = "The service failed"
    help: str = "This is a fault of the service, not of the request. Its log says more."

    def __init__(
        self,
        detail: str,
        *faults: Fault,
        findings: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.faults = faults
        self.findings = tuple(findings)
        self.headers = dict(headers or {})
        self.facts = facts


class NotFound(ServiceError):
    """Something that this project does not hold."""

    status = 404
