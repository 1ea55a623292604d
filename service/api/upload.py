"""A body on its way into the content store: batches of 4 MiB, hashed and written in a thread while the next one arrives.

At most two batches are in memory, and the loop that serves everyone only copies bytes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from service import metrics, quotas
from service.api.digests import HEADERS, announced
from service.api.pace import paced
from service.contents import Stored, keep
from service.errors import BodyTooLarge, Fault, MediaTypeUnsupported, TooSlow, Unavailable
from service.parts import Parts

BATCH_BYTES: Final = 4 << 20

Absorb = Callable[[memoryview], None]


async def receive(request: Request, parts: Parts, project_id: str) -> Stored:
    """The body, stored and this project's. Whatever goes wrong, nothing of it is kept.

    Raises: BodyTooLarge, MediaTypeUnsupported, DigestHeaderMalformed, DigestMismatch, CannotWrite, ClientDisconnect.
    """
    limit = parts.settings.max_blob_bytes
    require_identity(request)
    require_length(request, limit)
    await run_in_threadpool(_require_room, parts, project_id, length_of(request))
    digests = announced({name: request.headers.getlist(name) for name in HEADERS})
    async with parts.uploads.of(project_id):
        writer = await run_in_threadpool(parts.blobs.writer)
        try:

            def absorb(content: memoryview) -> None:
                digests.update(content)
                writer.write(content)

            await pump(paced(request.stream(), parts), absorb, too_large(limit), limit)
            digests.check(writer.sha256)
            stored = await run_in_threadpool(keep, parts, project_id, writer)
            metrics.UPLOADED.labels("body").inc(stored.bytes)
            return stored
        finally:
            await run_in_threadpool(writer.abort)


def require_length(request: Request, limit: int) -> None:
    """Raises: BodyTooLarge for a body that says itself that it is too long, before a byte of it is read."""
    if (length_of(request) or 0) > limit:
        raise too_large(limit)


def length_of(request: Request) -> int | None:
    """What a body says of its length."""
    length = request.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else None


def _require_room(parts: Parts, project_id: str, length: int | None) -> None:
    """Raises: QuotaExceeded for a body that the project can't hold already, before a byte of it is read."""
    if length:
        with parts.database.read() as session:
            quotas.require_possible(session, parts.settings, project_id, length)


def require_identity(request: Request) -> None:
    """Raises: MediaTypeUnsupported for a body in a content coding or an envelope: what is stored is what was meant."""
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        fault = Fault("header", "Content-Type", "a form with a file in it is not the file")
        raise MediaTypeUnsupported("Send the bytes themselves as the body: curl -T FILE, not -F.", fault)
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        fault = Fault("header", "Content-Encoding", f"{coding!r} is not undone here")
        raise MediaTypeUnsupported("Content comes as its plain bytes, without a content coding.", fault)


def too_large(limit: int) -> BodyTooLarge:
    """The refusal."""
    return BodyTooLarge(f"The body is larger than {limit:,} bytes.")


async def pump(
    chunks: AsyncIterator[bytes],
    absorb: Absorb,
    refusal: BodyTooLarge,
    limit: int,
    *,
    salvage: bool = False,
) -> None:
    """Let `absorb` have the chunks in batches, in a thread; `refusal` is for a body of more than `limit` bytes.

    With `salvage`, what came before a connection broke off is absorbed too.
    """
    loop = asyncio.get_running_loop()
    filling, spare = bytearray(BATCH_BYTES), bytearray(BATCH_BYTES)
    used = total = 0
    working: asyncio.Future[None] | None = None

    async def pass_on(batch: memoryview) -> asyncio.Future[None]:
        if working is not None:
            await asyncio.shield(working)
        return loop.run_in_executor(None, partial(absorb, batch))

    try:
        try:
            async for chunk in chunks:
                total += len(chunk)
                if total > limit:
                    raise refusal
                at = 0
                while at < len(chunk):
                    part = (
                        chunk[at : at + BATCH_BYTES - used]
                        if at or len(chunk) > BATCH_BYTES - used
                        else chunk
                    )
                    filling[used : used + len(part)] = part
                    used, at = used + len(part), at + len(part)
                    if used == BATCH_BYTES:
                        working = await pass_on(memoryview(filling))
                        filling, spare, used = spare, filling, 0
        except (ClientDisconnect, TooSlow, Unavailable):
            if salvage:
                working = await pass_on(memoryview(filling)[:used])
                await asyncio.shield(working)
            raise
        working = await pass_on(memoryview(filling)[:used])
        await asyncio.shield(working)
    finally:
        if working is not None and not working.done():
            await asyncio.wait({working})
