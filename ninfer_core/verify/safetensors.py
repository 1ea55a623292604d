"""The engine for safetensors files and sharded sets: structure, digests, and what is odd about the words."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.file_findings import report_changes, report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import FileDigest
from ninfer_core.io import CHUNK_BYTES, ByteSource, FileSet, Progress, chunks, no_progress, sha256
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import WordStatistics
from ninfer_core.sources.checkpoint import INDEX_SUFFIX, Checkpoint, Kind, open_checkpoint
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.safetensors import SourceTensor
from ninfer_core.verify.checks import Asked, CheckName
from ninfer_core.verify.metrics import WORDS, word_metrics
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import ObjectResult, Report, conclude
from ninfer_core.verify.totals import Totals

# Bytes of the 8-bit floats that are NaN, infinite, +0, -0: each dialect has its own (E8M0 has no zero).
_BYTES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "F8_E4M3": ((0x7F, 0xFF), (), (0x00,), (0x80,)),
    "F8_E5M2": ((0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF), (0x7C, 0xFC), (0x00,), (0x80,)),
    "F8_E4M3FNUZ": ((0x80,), (), (0x00,), ()),
    "F8_E5M2FNUZ": ((0x80,), (), (0x00,), ()),
    "F8_E8M0": ((0xFF,), (), (), ()),
}
_NOT_HERE: dict[CheckName, str] = {
    "layout": "a safetensors file has no registered layout",
    "values": "no word of a safetensors file is illegal",
    "parity": "only .ninfer artifacts are compared with a source",
}


def verify_safetensors(
    files: FileSet,
    entry: str,
    asked: Asked,
    *,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> Report:
    """Verify one safetensors file, or the index `entry` with its shards. Raises: CannotRead."""
    findings = Findings()
    kind = Kind.INDEX if entry.endswith(INDEX_SUFFIX) else Kind.FILE
    checkpoint = open_checkpoint(files, kind, entry, findings)
    skipped = {check: reason for check, reason in _NOT_HERE.items() if check in asked}
    pool = Pool(workers, progress)
    sources: list[ByteSource] = [files.open(entry)]
    results: list[ObjectResult] = []
    if checkpoint is None:
        skipped |= {
            check: "there is no sound header to read" for check in asked.checks if check != "structure"
        }
    else:
        sources = [checkpoint.source(file.name) for file in checkpoint.files]
        results = [
            _result(ordinal, tensor, asked) for ordinal, tensor in enumerate(checkpoint.tensors.values())
        ]
    started(
        Totals(
            len(results), sum(source.size for source in sources) + sum(item.bytes or 0 for item in results)
        )
    )
    tasks: list[Callable[[], FileDigest | _Scan | CutShort | CannotRead]] = [
        partial(_file, source, pool) for source in sources
    ]
    if checkpoint is not None:
        tasks += [
            partial(_tensor, checkpoint, tensor, "statistics" in asked, pool)
            for tensor in checkpoint.tensors.values()
        ]
    done = iter(pool.run(tasks))
    digests = []
    for _, outcome in zip(sources, done, strict=False):  # sources first: it must not eat a tensor's outcome
        if isinstance(outcome, FileDigest):
            digests.append(outcome)
        elif isinstance(outcome, CutShort):
            report_cut_short(outcome, findings)
        else:
            skipped["structure"] = str(outcome)
    _merge(done, results, findings, asked)
    report_changes(sources, findings)
    for result in results:
        result.failed = result.ordinal in findings.failed
    checks, verdict = conclude(asked, results, findings, skipped)
    whole = checkpoint is not None and len(digests) == len(sources)
    if checkpoint is None and not entry.endswith(INDEX_SUFFIX):
        whole = len(digests) == 1  # one file: its digest says which bytes were judged
    return Report(
        "safetensors",
        None,
        None,
        None,
        None,
        tuple(digests),
        whole,
        tuple(results),
        checks,
        tuple(findings),
        findings.unlisted,
        verdict,
    )


@dataclass(slots=True)
class _Scan:
    sha256: str
    statistics: WordStatistics | None = None
    metrics: dict[str, Any] = field(default_factory=dict)


def _result(ordinal: int, tensor: SourceTensor, asked: Asked) -> ObjectResult:
    concerns = asked.checks & {"structure", "statistics"}
    return ObjectResult(
        ordinal,
        tensor.name,
        "tensor",
        tensor.dtype,
        None,
        tensor.shape,
        tensor.offset,
        tensor.bytes,
        frozenset(concerns),
    )


def _file(source: ByteSource, pool: Pool) -> FileDigest | CutShort | CannotRead:
    try:
        return FileDigest(source.name, source.size, sha256(source, progress=pool.advance))
    except (CutShort, CannotRead) as error:
        return error


def _tensor(
    checkpoint: Checkpoint, tensor: SourceTensor, look: bool, pool: Pool
) -> _Scan | CutShort | CannotRead:
    digest = hashlib.sha256()
    word = DTYPES[tensor.dtype].word
    statistics: WordStatistics | None = None
    buffer = pool.buffers.get("tensor", min(CHUNK_BYTES, max(tensor.bytes, 1)))
    try:
        for piece in chunks(checkpoint.source(tensor.file), tensor.offset, tensor.bytes, buffer.data):
            digest.update(piece)
            part = _look(np.frombuffer(piece, word), tensor.dtype) if look and word is not None else None
            if part is not None:
                statistics = part if statistics is None else statistics.merge(part)
            pool.advance(len(piece))
    except (CutShort, CannotRead) as error:
        return error
    metrics = word_metrics(tensor.dtype, statistics) if statistics is not None else {}
    return _Scan(digest.hexdigest(), statistics, metrics)


def _look(words: NDArray[Any], dtype: str) -> WordStatistics | None:
    """What can be said of words of this dtype; nothing for integers that no format here stores."""
    if dtype in _BYTES:
        histogram = np.bincount(words, minlength=256)
        nans, infinities, zeros, negative = (int(histogram[list(places)].sum()) for places in _BYTES[dtype])
        return WordStatistics(words.size, zeros, negative, nans, infinities)
    return cpu.statistics_direct(words, dtype) if dtype in (*WORDS, "I32") else None


def _merge(
    done: Iterator[FileDigest | _Scan | CutShort | CannotRead],
    results: list[ObjectResult],
    findings: Findings,
    asked: Asked,
) -> None:
    for result, outcome in zip(results, done, strict=True):
        if isinstance(outcome, CutShort):
            report_cut_short(outcome, findings, result.name, result.ordinal)
        if not isinstance(outcome, _Scan):
            result.reasons = dict.fromkeys(result.concerns, str(outcome))
            continue
        result.sha256, result.metrics = outcome.sha256, outcome.metrics
        result.covered = result.concerns
        if outcome.statistics is not None and "statistics" in asked:
            _advise(result, outcome.statistics, findings)


def _advise(result: ObjectResult, statistics: WordStatistics, findings: Findings) -> None:
    odd = statistics.nans + statistics.infinities
    if odd:
        findings.add(
            "statistics.not_finite",
            f"{statistics.nans:,} NaN and {statistics.infinities:,} infinite of {statistics.count:,} words",
            object=result.name,
            where={"nan": statistics.nans, "infinite": statistics.infinities},
            expected="finite words",
            found=f"{odd} words that are not",
            count=odd,
        )
    if statistics.count and statistics.positive_zeros + statistics.negative_zeros == statistics.count:
        message = f"every word of {result.format} {list(result.shape or ())} is zero"
        findings.add(
            "statistics.all_zero",
            message,
            object=result.name,
            expected="some word that is not zero",
            found="zeros",
        )
