"""Bytes that no object holds: padding after the directory, gaps between objects, what follows the last one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ninfer_core.containers.directory import Artifact
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.io import CHUNK_BYTES, ByteSource, chunks
from ninfer_core.kernels import cpu
from ninfer_core.verify.pool import Pool


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file, or of the logical payload, that has no meaning."""

    source: ByteSource
    offset: int
    bytes: int
    what: str
    start: int = 0  # where the source begins in the logical file


def regions(artifact: Artifact) -> Iterator[Region]:
    """Every unreferenced stretch, in file order."""
    for file in artifact.files:
        if file.payload_offset > file.header_bytes:
            yield Region(
                file.source,
                file.header_bytes,
                file.payload_offset - file.header_bytes,
                "the header and the payload",
            )
    if not artifact.objects:
        return
    cursor = 0
    claims = sorted(
        (item.offset, item.offset + item.bytes)
        for item in artifact.objects
        if item.offset is not None and item.bytes is not None
    )
    for begin, end in (*claims, (artifact.payload.size, artifact.payload.size)):
        begin = min(begin, artifact.payload.size)
        if begin > cursor:
            what = "two objects" if begin < artifact.payload.size else "the last object and the end"
            yield Region(artifact.payload, cursor, begin - cursor, what, artifact.logical_start)
        cursor = max(cursor, end)


def scan(artifact: Artifact, pool: Pool) -> Findings:
    """One advisory for each stretch that holds a nonzero byte; an unreadable stretch has been reported already."""
    findings = Findings()
    for region in regions(artifact):
        pool.check()
        try:
            first, count = _nonzero(region, pool)
        except (CutShort, CannotRead):
            continue
        if count:
            findings.add(
                "structure.unreferenced_bytes",
                f"{count:,} of {region.bytes:,} bytes between {region.what} are not zero",
                where={
                    "file": region.source.name,
                    "offset": region.start + region.offset + first,
                    "bytes": region.bytes,
                },
                expected="zero bytes",
                found=f"{count} nonzero bytes",
                count=count,
            )
    return findings


def _nonzero(region: Region, pool: Pool) -> tuple[int, int]:
    first, count, done = -1, 0, 0
    buffer = pool.buffers.get("unreferenced", min(CHUNK_BYTES, region.bytes))
    for piece in chunks(region.source, region.offset, region.bytes, buffer.data):
        pool.check()
        content = np.frombuffer(piece, np.uint8)
        if cpu.any_nonzero(content):
            if first < 0:
                first = done + int((content != 0).argmax())
            count += int(np.count_nonzero(content))
        done += len(piece)
    return first, count
