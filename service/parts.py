"""What every request needs, made once at start and handed on; nothing of it is global."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Protocol

from service.blobs import Blobs
from service.records.database import Database
from service.settings import Settings

_DOCUMENTS = 2


class Enqueues(Protocol):
    """The one thing that a request asks of the durable engine (`service.queue.Queue`)."""

    def enqueue(self, workflow: str, id: str, *args: str) -> None:  # noqa: A002  the engine's own word
        """Start `workflow` under `id`; an id that the engine knows is left alone."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Settings, database, content and queue; `closing` is set at shutdown, so that streams end by themselves."""

    settings: Settings
    database: Database
    blobs: Blobs
    queue: Enqueues
    closing: threading.Event = field(default_factory=threading.Event)
    uploads: asyncio.Semaphore = field(init=False)  # each upload holds two batches in memory
    documents: asyncio.Semaphore = field(init=False)  # a large one takes many times its bytes when it is read

    def __post_init__(self) -> None:
        """Places for as many uploads as the settings say, and for few large documents."""
        object.__setattr__(self, "documents", asyncio.Semaphore(_DOCUMENTS))
        object.__setattr__(self, "uploads", asyncio.Semaphore(self.settings.max_uploads))
