"""The engine for `.ninfer` artifacts: read the directory, plan tasks by bytes, one pass, merge in order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from ninfer_core.containers.directory import (
    Artifact,
    ArtifactObject,
    BrokenObject,
    Limits,
    ResourceObject,
    TensorObject,
)
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.file_findings import report_changes, report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import FileDigest, resource_identity, tensor_identity
from ninfer_core.io import ByteSource, FileSet, Progress, no_progress, sha256
from ninfer_core.kernels.values import CodeStatistics, ErrorSums
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan, report_source_changes
from ninfer_core.verify import faults, unreferenced
from ninfer_core.verify.against import Against, ObjectPlan, evidence, pair
from ninfer_core.verify.checks import Asked, CheckName
from ninfer_core.verify.metrics import code_metrics, error_metrics, is_all_zero, is_integer, word_metrics
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import ObjectResult, Report, conclude
from ninfer_core.verify.tensor import Part, TensorPass, merge_statistics
from ninfer_core.verify.totals import Totals

_WORD_CHECKS: frozenset[CheckName] = frozenset(("layout", "values", "statistics"))
_DEFAULT_LIMITS = Limits()


def verify_ninfer(
    files: FileSet,
    entry: str,
    asked: Asked,
    against: Against | None = None,
    *,
    workers: int | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> Report:
    """Verify one artifact; every fault of the file is a finding.

    `started` hears what is ahead, `progress` bytes as they are done. Raises: CannotRead when the entry cannot be
    opened, KeyboardInterrupt after stopping every thread.
    """
    findings = Findings()
    artifact = read_artifact(files, entry, findings, limits)
    skipped: dict[CheckName, str] = {}
    plans: Mapping[str, ObjectPlan] = {}
    if "parity" in asked:
        if against is None:
            skipped["parity"] = "no source and recipe were given"
        elif artifact is None:
            skipped["parity"] = "there is no directory to compare"
        elif against.plan is None:
            skipped["parity"] = against.reason
        if against is not None:
            findings.extend(against.findings)
            if against.plan is not None and artifact is not None:
                plans = pair(artifact, against.plan, findings)
    pool = Pool(workers, progress)
    if artifact is None:
        digests = _file_digests([files.open(entry)], pool, findings)
        skipped |= {check: "there is no directory to read" for check in asked.checks if check != "structure"}
        checks, verdict = conclude(asked, (), findings, skipped)
        whole = len(digests) == 1
        return Report(
            "ninfer",
            None,
            None,
            None,
            None,
            digests,
            whole,
            (),
            checks,
            tuple(findings),
            findings.unlisted,
            verdict,
        )
    levels = {name: evidence(item) for name, item in plans.items()}
    engine = _Engine(artifact, asked, plans, levels, skipped, findings, pool)
    return engine.run(started, against.plan if plans and against is not None else None)


class _Engine:
    def __init__(
        self,
        artifact: Artifact,
        asked: Asked,
        plans: Mapping[str, ObjectPlan],
        evidence: Mapping[str, str],
        skipped: dict[CheckName, str],
        findings: Findings,
        pool: Pool,
    ) -> None:
        self.artifact, self.asked, self.plans, self.evidence = artifact, asked, plans, evidence
        self.skipped = skipped
        self.findings, self.pool = findings, pool
        # Shared between objects: there may be half a million.
        every = frozenset(asked.checks)
        self._concerns = {"tensor": every, "resource": every - _WORD_CHECKS}
        broken = "the object's entry is broken or its bytes are missing"
        self._broken = {kind: dict.fromkeys(checks, broken) for kind, checks in self._concerns.items()}
        self.results = [self._result(item) for item in artifact.objects]
        if not artifact.listed:
            # Nothing can be said of objects that were never read: no check of them is complete.
            self.skipped |= dict.fromkeys(asked.checks, "the list of objects could not be read")

    def run(self, started: Callable[[Totals], None], plan: Plan | None) -> Report:
        """Every task on the pool, every result merged in order."""
        artifact = self.artifact
        sources = artifact.sources
        started(Totals(len(artifact.objects), self._bytes_ahead(sources)))
        tasks: list[Callable[[], object]] = [partial(_digest, source, self.pool) for source in sources]
        tasks.append(partial(unreferenced.scan, artifact, self.pool))
        counts: list[int] = []
        for item in artifact.readable:
            work = list(self._tasks(item))
            counts.append(len(work))
            tasks += work
        done = iter(self.pool.run(tasks))
        outcomes = [next(done) for _ in sources]
        digests = _report_digests(outcomes, self.findings)
        scanned = next(done)
        for item, count in zip(artifact.readable, counts, strict=True):
            parts = [part for part in (next(done) for _ in range(count)) if isinstance(part, Part)]
            self._merge(item, parts)
        if isinstance(scanned, Findings):
            self.findings.extend(scanned)
        unread = [str(outcome) for outcome in outcomes if isinstance(outcome, CannotRead)]
        if unread:
            self.skipped["structure"] = unread[0]
        report_changes(sources, self.findings)
        if plan is not None:
            report_source_changes(plan, self.findings)
        self._mark_failed()
        checks, verdict = conclude(self.asked, self.results, self.findings, self.skipped)
        return Report(
            "ninfer",
            artifact.revision,
            artifact.model_id,
            artifact.weights_id,
            artifact.name,
            digests,
            artifact.whole and len(digests) == len(sources),
            tuple(self.results),
            checks,
            tuple(self.findings),
            self.findings.unlisted,
            verdict,
        )

    def _bytes_ahead(self, sources: Sequence[ByteSource]) -> int:
        words = 2 if self.asked.checks & _WORD_CHECKS or self.plans else 1
        objects = sum(
            item.bytes * (words if isinstance(item, TensorObject) else 1) for item in self.artifact.readable
        )
        return sum(source.size for source in sources) + objects

    def _result(self, item: ArtifactObject) -> ObjectResult:
        match item:
            case TensorObject():
                return ObjectResult(
                    item.ordinal,
                    item.name,
                    "tensor",
                    item.format.name,
                    item.layout.name,
                    item.shape,
                    item.offset,
                    item.bytes,
                    self._concerns["tensor"],
                )
            case ResourceObject():
                place = (item.offset, item.bytes, self._concerns["resource"])
                return ObjectResult(item.ordinal, item.name, "resource", None, None, None, *place)
            case BrokenObject():
                kind = "resource" if item.kind == "resource" else "tensor"
                return ObjectResult(
                    item.ordinal,
                    item.label,
                    item.kind,
                    item.format,
                    item.layout,
                    item.shape,
                    item.offset,
                    item.bytes,
                    self._concerns[kind],
                    reasons=self._broken[kind],
                )

    def _tasks(self, item: TensorObject | ResourceObject) -> Iterator[Callable[[], Part]]:
        plan = self.plans.get(item.name)
        if isinstance(item, TensorObject):
            tensor_plan = plan if isinstance(plan, TensorPlan) else None
            yield from TensorPass(item, self.artifact.payload, self.asked, tensor_plan, self.pool).tasks()
            return
        yield partial(self._resource, item, plan if isinstance(plan, ResourcePlan) else None)

    def _resource(self, item: ResourceObject, plan: ResourcePlan | None) -> Part:
        part = Part(compared=plan is not None)
        try:
            part.sha256 = sha256(self.artifact.payload, item.offset, item.bytes, self.pool.advance)
        except (CutShort, CannotRead) as error:
            part.error = error
            return part
        try:
            if plan is not None:
                expected = sha256(plan.source, progress=lambda _: self.pool.check())
                if (plan.source.size, expected) != (item.bytes, part.sha256):
                    have, want = (
                        f"{item.bytes} bytes, sha256 {part.sha256}",
                        f"{plan.source.size} bytes, sha256 {expected}",
                    )
                    part.faults.append(
                        faults.Fault(
                            "parity.resource_mismatch",
                            1,
                            {"file": plan.source.name},
                            want,
                            have,
                            f"the resource is not the file {plan.source.name!r}",
                        )
                    )
        except (CutShort, CannotRead) as error:
            part.source_error = error
        return part

    def _merge(self, item: TensorObject | ResourceObject, parts: Sequence[Part]) -> None:
        result = self.results[item.ordinal]
        result.sha256 = next((part.sha256 for part in parts if part.sha256 is not None), None)
        if result.sha256 is not None:
            result.identity = (
                tensor_identity(item.format.name, item.shape, item.layout.name, result.sha256)
                if isinstance(item, TensorObject)
                else resource_identity(item.encoding, result.sha256)
            )
        start = self.artifact.logical_start + item.offset
        found = (fault for part in parts for fault in part.faults)
        faults.report(found, item.name, self.findings, start, item.ordinal)
        error = next((part.error for part in parts if part.error is not None), None)
        if error is not None:
            if isinstance(error, CutShort):
                report_cut_short(error, self.findings, item.name, item.ordinal)
            result.reasons = dict.fromkeys(result.concerns, str(error))
            return
        result.covered = result.concerns if "parity" not in result.concerns else result.concerns - {"parity"}
        self._merge_parity(item, parts, result)
        if isinstance(item, TensorObject) and "statistics" in self.asked:
            self._merge_statistics(item, parts, result)

    def _merge_parity(
        self, item: TensorObject | ResourceObject, parts: Sequence[Part], result: ObjectResult
    ) -> None:
        if "parity" not in self.asked:
            return
        plan = self.plans.get(item.name)
        if plan is None:
            result.reasons = {"parity": "no rule of the recipe makes this object as it is"}
            return
        source_error = next((part.source_error for part in parts if part.source_error is not None), None)
        if source_error is not None:
            result.reasons = {"parity": f"the source could not be read: {source_error}"}
            if isinstance(source_error, CutShort):
                report_cut_short(source_error, self.findings, item.name, about="source")
            return
        if not all(part.compared for part in parts):
            result.reasons = {"parity": "the source of this object is refused"}
            return
        result.covered = result.concerns
        if not any(fault.code.startswith("parity.") for part in parts for fault in part.faults):
            result.evidence = self.evidence[item.name]
        if isinstance(item, TensorObject) and isinstance(plan, TensorPlan):
            if is_integer(item.format):
                result.metrics["error"] = error_metrics(None, "integers are compared by their words")
            else:
                result.metrics["error"] = error_metrics(
                    ErrorSums.merge(one for part in parts for one in part.sums), ""
                )

    def _merge_statistics(self, item: TensorObject, parts: Sequence[Part], result: ObjectResult) -> None:
        statistics = merge_statistics(item, [one for part in parts for one in part.statistics])
        if statistics is None:
            return
        if isinstance(statistics, CodeStatistics):
            result.metrics |= code_metrics(item.format, statistics)
        else:
            result.metrics |= word_metrics(item.format.name, statistics)
        if is_all_zero(item.format, statistics):
            message = f"every value of {item.format.name} {list(item.shape)} is zero"
            self.findings.add(
                "statistics.all_zero",
                message,
                object=item.name,
                expected="some value that is not zero",
                found="zeros",
            )

    def _mark_failed(self) -> None:
        for result in self.results:
            result.failed = result.ordinal in self.findings.failed


def _digest(source: ByteSource, pool: Pool) -> FileDigest | CutShort | CannotRead:
    try:
        return FileDigest(source.name, source.size, sha256(source, progress=pool.advance))
    except (CutShort, CannotRead) as error:
        return error


def _report_digests(outcomes: Sequence[object], findings: Findings) -> tuple[FileDigest, ...]:
    digests = []
    for outcome in outcomes:
        if isinstance(outcome, FileDigest):
            digests.append(outcome)
        elif isinstance(outcome, CutShort):
            report_cut_short(outcome, findings)
    return tuple(digests)


def _file_digests(sources: Sequence[ByteSource], pool: Pool, findings: Findings) -> tuple[FileDigest, ...]:
    outcomes = pool.run([partial(_digest, source, pool) for source in sources])
    return _report_digests(outcomes, findings)
