"""The provenance record of a conversion, as the worker that made it wrote it: canonical JSON, known by its digest."""

from collections.abc import Iterator

from ninfer_core.errors import CannotRead
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.io import CHUNK_BYTES, chunks
from service import reports
from service.blobs import OpenBlob
from service.errors import NoReport
from service.parts import Parts


def record(parts: Parts, project_id: str, conversion_id: str) -> tuple[str, Iterator[bytes]]:
    """Its digest, and its content piece by piece.

    Raises, before the first piece: ConversionNotFound, NotFinal, NoReport (nothing was made, or its record is lost).
    """
    digest, file = _opened(parts, project_id, conversion_id)
    return digest, _pieces(file)


def _opened(parts: Parts, project_id: str, conversion_id: str) -> tuple[str, OpenBlob]:
    found = reports.conversion(parts, project_id, conversion_id)
    row, state = found.conversion, found.state
    digest = reports.require_final(row.record, state, {"passed"}, "conversion", "a record")
    try:
        return digest, parts.blobs.open(digest.removeprefix(DIGEST_PREFIX), "record")
    except CannotRead:
        raise NoReport("The record is no longer in the content store.", state=found.state) from None


def described(parts: Parts, project_id: str, conversion_id: str) -> tuple[str, int]:
    """Its digest and its length in bytes. Raises: ConversionNotFound, NotFinal, NoReport."""
    digest, file = _opened(parts, project_id, conversion_id)
    file.close()
    return digest, file.size


def _pieces(file: OpenBlob) -> Iterator[bytes]:
    try:
        buffer = bytearray(min(CHUNK_BYTES, max(1, file.size)))
        for piece in chunks(file, 0, file.size, buffer):
            yield bytes(piece)
    finally:
        file.close()
