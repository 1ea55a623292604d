"""Bytes that no object holds: padding after the directory, gaps between objects, what follows the last one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ninfer_core.containers.directory import Artifact, TensorObject
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings, Severity
from ninfer_core.io import CHUNK_BYTES, ByteSource, chunks
from ninfer_core.layouts.base import TENSOR_ALIGNMENT, align_up
from ninfer_core.verify.pool import Pool

_WORD = 8  # bytes looked at together


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file, or of the logical payload, that has no meaning."""

    source: ByteSource
    offset: int
    bytes: int
    what: str
    start: int = 0  # where the source begins in the logical file
    needed: int = 0  # bytes of it that the canonical writer puts there: alignment


def regions(artifact: Artifact) -> Iterator[Region]:
    """Every unreferenced stretch, in file order."""
    for file in artifact.files:
        if file.payload_offset > file.header_bytes:
            padding = file.payload_offset - file.header_bytes
            what = "the header and the payload"
            yield Region(file.source, file.header_bytes, padding, what, needed=padding)
    if not artifact.objects:
        return
    cursor = 0
    claims = sorted(
        (item.offset, item.offset + item.bytes, TENSOR_ALIGNMENT if isinstance(item, TensorObject) else 1)
        for item in artifact.objects
        if item.offset is not None and item.bytes is not None
    )
    for begin, end, alignment in (*claims, (artifact.payload.size, artifact.payload.size, 1)):
        begin = min(begin, artifact.payload.size)
        if begin > cursor:
            what = "two objects" if begin < artifact.payload.size else "the last object and the end"
            needed = min(begin, align_up(cursor, alignment)) - cursor
            yield Region(artifact.payload, cursor, begin - cursor, what, artifact.logical_start, needed)
        cursor = max(cursor, end)


def scan(artifact: Artifact, pool: Pool, canonical: bool | None = None) -> Findings:
    """What stretches without meaning hold; an unreadable one has been reported already.

    `canonical` None: an advisory `structure.unreferenced_bytes` for each that holds a nonzero byte. Otherwise the
    inventory is asked, and each that is longer than alignment needs is `inventory.placement_not_canonical` (B6) too,
    an advisory; with True an error, and then nonzero bytes are that same error. Placement is a rule of revisions 1 and 2.
    """
    findings = Findings()
    judged = canonical is not None and artifact.revision < 3
    severity: Severity = "error" if canonical else "advisory"
    for region in regions(artifact):
        pool.check()
        try:
            first, count = _nonzero(region, pool)
        except (CutShort, CannotRead):
            continue
        slack = region.bytes > region.needed if judged else False
        if slack or (count and judged and canonical):
            _not_canonical(region, first, count, severity, findings)
        if count and not (judged and canonical):
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


def _not_canonical(region: Region, first: int, count: int, severity: Severity, findings: Findings) -> None:
    slack = region.bytes - region.needed
    faults = []
    if slack:
        faults.append(f"{slack:,} bytes more than alignment needs")
    if count:
        faults.append(f"{count:,} nonzero bytes")
    kind = "nonzero" if not slack else "trailing" if region.what.endswith("the end") else "slack"
    findings.add(
        "inventory.placement_not_canonical",
        f"{' and '.join(faults)} between {region.what}",
        where={
            "file": region.source.name,
            "offset": region.start + region.offset + (first if kind == "nonzero" else region.needed),
            "bytes": region.bytes,
            "kind": kind,
        },
        expected=f"{region.needed:,} zero bytes",
        found=f"{region.bytes:,} bytes, {count:,} of them nonzero",
        count=max(slack, count),
        severity=severity,
    )


def _nonzero(region: Region, pool: Pool) -> tuple[int, int]:
    """Where the first nonzero byte lies in the region, or -1, and how many there are: plain numpy, nothing compiled."""
    first, count, done = -1, 0, 0
    buffer = pool.buffers.get("unreferenced", min(CHUNK_BYTES, region.bytes))
    for piece in chunks(region.source, region.offset, region.bytes, buffer.data):
        pool.check()
        content = np.frombuffer(piece, np.uint8)
        whole = content.size // _WORD * _WORD
        if content[:whole].view(np.uint64).any() or content[whole:].any():
            if first < 0:
                first = done + int((content != 0).argmax())
            count += int(np.count_nonzero(content))
        done += len(piece)
    return first, count
