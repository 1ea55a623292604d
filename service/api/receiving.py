"""The body of a request on its way to the end of an upload."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from service import metrics
from service.api.pace import paced
from service.api.upload import pump
from service.errors import BodyTooLarge, TooSlow, Unavailable
from service.parts import Parts
from service.records.models import Upload
from service.uploads.receiving import Checksum, Receipt


async def receive(
    request: Request, parts: Parts, upload: Upload, offset: int, checksum: Checksum | None
) -> int:
    """Take the body in. The offset after it. Raises: what `Receipt` does, BodyTooLarge, TooSlow, Unavailable, ClientDisconnect."""
    receipt = await run_in_threadpool(Receipt, parts, upload, offset, checksum)
    try:
        async with parts.uploads.of(upload.project_id):
            try:
                body = paced(request.stream(), parts)
                await pump(
                    body, receipt.absorb, too_many(upload.bytes), receipt.left, salvage=checksum is None
                )
            except BodyTooLarge:
                await run_in_threadpool(receipt.take_back)
                raise
            except (ClientDisconnect, TooSlow, Unavailable):
                await run_in_threadpool(receipt.keep_what_came)
                raise
            after = await run_in_threadpool(receipt.end)
            metrics.UPLOADED.labels("tus").inc(after - receipt.start)
            await run_in_threadpool(receipt.settle)
            return after
    finally:
        await run_in_threadpool(receipt.close)


def too_many(whole: int) -> BodyTooLarge:
    """The refusal."""
    return BodyTooLarge(f"The upload has {whole:,} bytes in all; this would be more.")
