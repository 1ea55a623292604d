"""Who there is to work: the workers that are alive and, where none is, why the last one may have refused to."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from service.evidence import WRONG
from service.parts import Parts
from service.records import selfchecks, workers
from service.records.models import DEFAULT_PROJECT


@dataclass(frozen=True, slots=True)
class Workforce:
    """`refused` is the kernel that the last self-check found wrong, and its device; None while somebody works."""

    alive: int
    refused: tuple[str, str] | None = None
    selfcheck: str | None = None  # the id of that self-check

    def __bool__(self) -> bool:
        return self.alive > 0

    @property
    def refusal(self) -> str | None:
        """Why nobody works, where that is known."""
        if self.refused is None:
            return None
        kernel, device = self.refused
        return f"the last self-check found {kernel} wrong on {device}, and a worker with wrong kernels refuses work"

    @property
    def waits(self) -> str:
        """What a queued job waits for."""
        if self.alive:
            return "It waits for a free worker."
        if self.refusal is not None:
            return f"It waits for a worker, and none is alive: {self.refusal}."
        return (
            "It waits for a worker, and none is alive: start one with ninfer-gate worker. "
            "One that has just started proves its kernels first."
        )


SOMEBODY: Final = Workforce(1)  # where nothing waits


def workforce(session: Session, parts: Parts) -> Workforce:
    """Those who said lately that they live."""
    silent = workers.stale(session, parts.settings.dead_after_seconds)
    alive = len(workers.all(session)) - len(silent)
    newest = None if alive else selfchecks.newest(session, DEFAULT_PROJECT)
    if newest is not None and newest.outcome == "failed":
        for row in selfchecks.results(session, [newest.id])[newest.id]:
            if row.outcome in WRONG:
                return Workforce(0, (row.kernel, newest.device), newest.id)
    return Workforce(alive)
