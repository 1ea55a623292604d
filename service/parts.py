"""What every request needs, made once at start and handed on; nothing of it is global."""

import asyncio
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakValueDictionary

from service.blobs import Blobs
from service.hearing import Hearing
from service.issuers import Issuers
from service.lanes import INTERACTIVE
from service.places import Places
from service.rates import Rates
from service.records import events
from service.records.database import Database
from service.settings import Settings
from service.uploads.storing import Storing
from service.uses import Uses

_DOCUMENTS = 2
_ASKING = 2


class Enqueues(Protocol):
    """What a request asks of the durable engine (`service.queue.Queue`)."""

    def enqueue(
        self,
        workflow: str,
        id: str,  # noqa: A002  the engine's own word
        *args: str | int,
        lane: str = INTERACTIVE,
        priority: int = 0,
    ) -> None:
        """Start `workflow` under `id`; an id that the engine knows is left alone."""
        ...

    def require_ready(self) -> None:
        """Raises: whatever the driver of its database does, when the engine cannot be asked."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Settings, database, content and queue; `closing` is set at shutdown, so that streams end by themselves."""

    settings: Settings
    database: Database
    blobs: Blobs
    queue: Enqueues
    closing: threading.Event = field(default_factory=threading.Event)
    storing: Storing = field(default_factory=Storing)  # what this process knows of uploads
    uploads: Places = field(init=False)  # each upload holds two batches in memory
    documents: Places = field(init=False)  # a large one takes many times its bytes when it is read
    _asking: WeakValueDictionary[tuple[str, ...], asyncio.Semaphore] = field(
        init=False, default_factory=WeakValueDictionary
    )
    rates: Rates = field(init=False)
    issuers: Issuers = field(init=False)
    uses: Uses = field(init=False, default_factory=Uses)
    hearing: Hearing = field(init=False)

    def __post_init__(self) -> None:
        """Places for as many uploads as the settings say, and for few large documents; counts begin at nothing."""
        object.__setattr__(self, "rates", Rates(self.settings))
        object.__setattr__(self, "hearing", Hearing(self._reached))
        object.__setattr__(self, "issuers", Issuers(self.settings))
        object.__setattr__(self, "documents", Places(_DOCUMENTS))
        object.__setattr__(self, "uploads", Places(self.settings.max_uploads))

    def asking(self, projects: Collection[str]) -> asyncio.Semaphore:
        """A place to wait for an issuer that these projects trust: an issuer that is slow keeps nobody else's from being asked."""
        return self._asking.setdefault(tuple(projects), asyncio.Semaphore(_ASKING))

    def _reached(self, job_ids: Collection[str]) -> Mapping[str, tuple[int, bool]]:
        with self.database.read() as session:
            return events.reached(session, job_ids)
