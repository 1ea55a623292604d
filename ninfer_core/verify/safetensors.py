"""The engine for safetensors files and sharded sets: structure, digests, codes and scales, what is odd about words."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.file_findings import report_changes, report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.io import CHUNK_BYTES, ByteSource, FileSet, chunks
from ninfer_core.kernels.processor import Processor, produced_json
from ninfer_core.kernels.values import WordStatistics
from ninfer_core.sources.checkpoint import INDEX_SUFFIX, Checkpoint, Kind, open_checkpoint
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.safetensors import SourceTensor
from ninfer_core.verify.checks import Asked, CheckName
from ninfer_core.verify.declared import check_declared, read_declarations
from ninfer_core.verify.dialects import misfits
from ninfer_core.verify.faults import report
from ninfer_core.verify.files import digest_tasks, take_digests
from ninfer_core.verify.held import nothing, of_checkpoint
from ninfer_core.verify.metrics import WORDS, word_metrics
from ninfer_core.verify.outcomes import Outcome, Outcomes, Scan, Unread
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.recorded import recorded
from ninfer_core.verify.report import ObjectResult, Report, conclude
from ninfer_core.verify.task import Prepared, Task
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
    "restrictions": "only .ninfer artifacts are made by a recipe",
    "inventory": "only .ninfer artifacts have a registered target",
    "source": "only .ninfer artifacts are made of a source",
    "parity": "only .ninfer artifacts are compared with a source",
}
_SHARD = re.compile(r"-\d{5}-of-(?!00001)\d{5}\.safetensors$")


def prepare_safetensors(files: FileSet, entry: str, asked: Asked, pool: Pool) -> Prepared:
    """One safetensors file, or the index `entry` with its shards. Raises: CannotRead when it cannot be opened."""
    findings = Findings()
    kind = Kind.INDEX if entry.endswith(INDEX_SUFFIX) else Kind.FILE
    checkpoint = open_checkpoint(files, kind, entry, findings)
    skipped = {check: reason for check, reason in _NOT_HERE.items() if check in asked}
    if checkpoint is not None and "relations" in asked:
        reason = _relate(checkpoint, kind, findings)
        if reason is not None:
            skipped["relations"] = reason
    return _Pass(files.open(entry), checkpoint, kind, asked, skipped, findings, pool)


def _relate(checkpoint: Checkpoint, kind: Kind, findings: Findings) -> str | None:
    """Check `relations`, which reads no tensor; a reason where it cannot be answered."""
    ordinals = {name: ordinal for ordinal, name in enumerate(checkpoint.tensors)}
    declarations = read_declarations(checkpoint.folder)
    alone = kind is Kind.FILE and _SHARD.search(checkpoint.name) is not None
    elsewhere = 0
    for misfit in misfits(checkpoint.tensors, declarations.block):
        if alone and misfit.missing:
            elsewhere += 1
        else:
            misfit.report(ordinals[misfit.name], findings)
    check_declared(checkpoint.tensors, ordinals, declarations, findings)
    if elsewhere:
        return f"this is one shard of several, and {elsewhere} partners of its tensors are in others: verify the index"
    return None


class _Pass:
    """Files, then tensors; the entry alone when there is no sound header."""

    def __init__(
        self,
        entry: ByteSource,
        checkpoint: Checkpoint | None,
        kind: Kind,
        asked: Asked,
        skipped: Mapping[CheckName, str],
        findings: Findings,
        pool: Pool,
    ) -> None:
        self.pool = pool
        self._kind, self._asked, self._skipped, self._findings = kind, asked, skipped, findings
        self._sound = checkpoint is not None
        self._sources: tuple[ByteSource, ...] = (entry,)
        self._held = nothing(1)
        self._tensors: tuple[SourceTensor, ...] = ()
        if checkpoint is not None:
            self._sources = tuple(checkpoint.source(file.name) for file in checkpoint.files)
            self._tensors = tuple(checkpoint.tensors.values())
            self._held = of_checkpoint(checkpoint)
        tasks: list[Task[[], Outcome]] = [*digest_tasks(self._sources, pool, self._held)]
        with_files = {one.ordinal for objects in self._held for one in objects}
        self._read: list[bool] = []  # whether a task of its own reads the tensor
        ahead = sum(source.size for source in self._sources) + sum(tensor.bytes for tensor in self._tensors)
        look = "statistics" in asked
        for ordinal, tensor in enumerate(self._tensors):
            again = ordinal in with_files
            self._read.append(not again or (look and _says_something(tensor.dtype)))
            if checkpoint is not None and self._read[-1]:
                tasks.append(Task(tensor.bytes, partial(_tensor, checkpoint, tensor, not again, look, pool)))
                ahead += tensor.bytes if again else 0
        self.tasks: Sequence[Task[[], Outcome]] = tasks
        self.totals = Totals(len(self._tensors), ahead)

    def conclude(self, outcomes: Iterable[Outcome]) -> Report:
        """See `Prepared.conclude`."""
        findings = Findings()
        findings.extend(self._findings)
        asked = self._asked
        skipped = dict(self._skipped)
        if not self._sound:
            skipped |= dict.fromkeys(asked.checks - {"structure"}, "there is no sound header to read")
        done = Outcomes(outcomes)
        taken = take_digests(len(self._sources), done, findings, self._held)
        if taken.unread:
            skipped["structure"] = taken.unread[-1]
        results = [_result(ordinal, tensor, asked) for ordinal, tensor in enumerate(self._tensors)]
        for result, read in zip(results, self._read, strict=True):
            _merge(result, taken.objects.get(result.ordinal), done if read else None, findings)
        done.end()
        report_changes(self._sources, findings)
        for result in results:
            result.failed = result.ordinal in findings.failed
        checks, verdict = conclude(asked, results, findings, skipped)
        # One file's digest says which bytes were judged, a broken index does not.
        judged = self._sound or self._kind is Kind.FILE
        return Report(
            "safetensors",
            None,
            None,
            None,
            None,
            taken.files,
            judged and len(taken.files) == len(self._sources),
            tuple(results),
            checks,
            tuple(findings),
            findings.unlisted,
            verdict,
        )


def _result(ordinal: int, tensor: SourceTensor, asked: Asked) -> ObjectResult:
    concerns = asked.checks & {"structure", "statistics", "relations"}
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


def _tensor(checkpoint: Checkpoint, tensor: SourceTensor, hashed: bool, look: bool, pool: Pool) -> Outcome:
    word = DTYPES[tensor.dtype].word if look else None
    try:
        if word is None:
            return _scan(checkpoint, tensor, hashed, None, pool)
        return recorded(pool, _scan, checkpoint, tensor, hashed, word, pool)
    except (CutShort, CannotRead) as error:
        return error


def _scan(
    checkpoint: Checkpoint, tensor: SourceTensor, hashed: bool, word: np.dtype[Any] | None, pool: Pool
) -> Scan:
    digest = hashlib.sha256() if hashed else None
    statistics: WordStatistics | None = None
    buffer = pool.buffers.get("tensor", min(CHUNK_BYTES, max(tensor.bytes, 1)))
    for piece in chunks(checkpoint.source(tensor.file), tensor.offset, tensor.bytes, buffer.data):
        if digest is not None:
            digest.update(piece)
        part = None if word is None else _look(np.frombuffer(piece, word), tensor.dtype, pool.processor)
        if part is not None:
            statistics = part if statistics is None else statistics.merge(part)
        pool.advance(len(piece))
    return Scan(None if digest is None else digest.hexdigest(), statistics)


def _says_something(dtype: str) -> bool:
    return dtype in _BYTES or dtype in (*WORDS, "I32")


def _look(words: NDArray[Any], dtype: str, processor: Processor) -> WordStatistics | None:
    """What can be said of words of this dtype; nothing for integers that no format here stores."""
    if dtype in _BYTES:
        histogram = np.bincount(words, minlength=256)
        nans, infinities, zeros, negative = (int(histogram[list(places)].sum()) for places in _BYTES[dtype])
        return WordStatistics(words.size, zeros, negative, nans, infinities)
    return processor.statistics_direct(words, dtype) if _says_something(dtype) else None


def _merge(
    result: ObjectResult, digest: str | Unread | None, outcomes: Outcomes | None, findings: Findings
) -> None:
    """`digest` is what came with the file's; without `outcomes` nothing else was read of the tensor."""
    scan = Scan(None) if outcomes is None else outcomes.take(Scan, CutShort, CannotRead)
    error = digest if isinstance(digest, Unread) else scan
    if isinstance(error, CutShort):
        report_cut_short(error, findings, result.name, result.ordinal)
    if isinstance(digest, Unread) or not isinstance(scan, Scan):
        result.reasons = dict.fromkeys(result.concerns, str(error))
        return
    result.sha256, result.covered = digest or scan.sha256, result.concerns
    report(scan.faults, result.name, findings)
    if scan.statistics is not None:
        result.metrics = word_metrics(result.format or "", scan.statistics)
        if scan.kernels:
            result.metrics["kernels"] = produced_json(scan.kernels)
        _advise(result, scan.statistics, findings)


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
