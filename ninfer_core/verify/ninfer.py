"""The engine for `.ninfer` artifacts: read the directory, plan tasks by bytes, one pass, merge in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from ninfer_core.containers.directory import Artifact, ResourceObject, TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.file_findings import report_changes
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet, sha256
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan, report_source_changes
from ninfer_core.verify import unreferenced
from ninfer_core.verify.against import Against, ObjectPlan, pair
from ninfer_core.verify.checks import WORD_CHECKS, Asked, CheckName
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.files import digest_tasks, take_digests
from ninfer_core.verify.objects import Merge
from ninfer_core.verify.outcomes import Outcome, Outcomes, Part
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import Report, conclude
from ninfer_core.verify.task import Prepared, Task
from ninfer_core.verify.tensor import TensorPass
from ninfer_core.verify.totals import Totals


def prepare_ninfer(files: FileSet, entry: str, asked: Asked, against: Against | None, pool: Pool) -> Prepared:
    """One artifact, its directory read; every fault of the file is a finding.

    Raises: CannotRead when the entry cannot be opened.
    """
    findings = Findings()
    artifact = read_artifact(files, entry, findings)
    skipped: dict[CheckName, str] = {}
    plans: Mapping[str, ObjectPlan] = {}
    if "parity" in asked:
        if against is None:
            skipped["parity"] = "no source and recipe were given"
        elif against.plan is None:
            skipped["parity"] = against.reason
        if against is not None:
            findings.extend(against.findings)
            if against.plan is not None and artifact is not None:
                plans = pair(artifact, against.plan, findings)
    if artifact is None:
        return _NoDirectory(files.open(entry), asked, findings, pool)
    plan = against.plan if plans and against is not None else None
    return _Pass(artifact, asked, plans, plan, skipped, findings, pool)


class _NoDirectory:
    """A file with nothing in it to check: its digest alone says which bytes were judged."""

    def __init__(self, source: ByteSource, asked: Asked, findings: Findings, pool: Pool) -> None:
        self.totals = Totals(0, source.size)
        self.tasks: Sequence[Task[[], Outcome]] = tuple(digest_tasks((source,), pool))
        self.pool = pool
        self._asked, self._findings = asked, findings

    def conclude(self, outcomes: Iterable[Outcome]) -> Report:
        """See `Prepared.conclude`."""
        findings = Findings()
        findings.extend(self._findings)
        done = Outcomes(outcomes)
        digests, _ = take_digests(1, done, findings)
        done.end()
        skipped = dict.fromkeys(self._asked.checks - {"structure"}, "there is no directory to read")
        checks, verdict = conclude(self._asked, (), findings, skipped)
        return Report(
            "ninfer",
            None,
            None,
            None,
            None,
            digests,
            len(digests) == 1,
            (),
            checks,
            tuple(findings),
            findings.unlisted,
            verdict,
        )


class _Pass:
    """An artifact with a directory: files, unreferenced bytes, then every object that can be read."""

    def __init__(
        self,
        artifact: Artifact,
        asked: Asked,
        plans: Mapping[str, ObjectPlan],
        plan: Plan | None,
        skipped: Mapping[CheckName, str],
        findings: Findings,
        pool: Pool,
    ) -> None:
        self.pool = pool
        self._artifact, self._asked, self._plans, self._plan = artifact, asked, plans, plan
        self._skipped, self._findings = skipped, findings
        held = sum(item.bytes for item in artifact.readable)
        stored = sum(source.size for source in artifact.sources)
        words = self._bytes_of_words() if asked.checks & WORD_CHECKS or plans else 0
        self.totals = Totals(len(artifact.objects), stored + held + words)
        scan = partial(unreferenced.scan, artifact, pool)
        tasks: list[Task[[], Outcome]] = [
            *digest_tasks(artifact.sources, pool),
            Task(max(0, stored - held), scan),
        ]
        self._counts: list[int] = []  # tasks of each readable object
        for item in artifact.readable:
            before = len(tasks)
            tasks += self._object_tasks(item)
            self._counts.append(len(tasks) - before)
        self.tasks: Sequence[Task[[], Outcome]] = tasks

    def conclude(self, outcomes: Iterable[Outcome]) -> Report:
        """See `Prepared.conclude`."""
        artifact = self._artifact
        findings = Findings()
        findings.extend(self._findings)
        skipped = dict(self._skipped)
        if not artifact.listed:
            # Nothing can be said of objects that were never read: no check of them is complete.
            skipped |= dict.fromkeys(self._asked.checks, "the list of objects could not be read")
        done = Outcomes(outcomes)
        digests, unread = take_digests(len(artifact.sources), done, findings)
        scanned = done.take(Findings)
        merge = Merge(artifact, self._asked, self._plans, findings)
        for item, count in zip(artifact.readable, self._counts, strict=True):
            merge.take(item, [done.take(Part) for _ in range(count)])
        done.end()
        findings.extend(scanned)
        if unread:
            skipped["structure"] = unread[0]
        report_changes(artifact.sources, findings)
        if self._plan is not None:
            report_source_changes(self._plan, findings)
        results = merge.results()
        checks, verdict = conclude(self._asked, results, findings, skipped)
        return Report(
            "ninfer",
            artifact.revision,
            artifact.model_id,
            artifact.weights_id,
            artifact.name,
            digests,
            artifact.whole and len(digests) == len(artifact.sources),
            results,
            checks,
            tuple(findings),
            findings.unlisted,
            verdict,
        )

    def _bytes_of_words(self) -> int:
        return sum(item.bytes for item in self._artifact.tensors)

    def _object_tasks(self, item: TensorObject | ResourceObject) -> Iterator[Task[[], Part]]:
        plan = self._plans.get(item.name)
        if isinstance(item, TensorObject):
            tensor_plan = plan if isinstance(plan, TensorPlan) else None
            yield from TensorPass(item, self._artifact.payload, self._asked, tensor_plan, self.pool).tasks()
            return
        resource_plan = plan if isinstance(plan, ResourcePlan) else None
        source = 0 if resource_plan is None else resource_plan.source.size
        yield Task(item.bytes + source, partial(self._resource, item, resource_plan))

    def _resource(self, item: ResourceObject, plan: ResourcePlan | None) -> Part:
        part = Part(compared=plan is not None)
        try:
            part.sha256 = sha256(self._artifact.payload, item.offset, item.bytes, self.pool.advance)
        except (CutShort, CannotRead) as error:
            part.error = error
            return part
        if plan is None:
            return part
        try:
            expected = sha256(plan.source, progress=lambda _: self.pool.check())
        except (CutShort, CannotRead) as error:
            part.source_error = error
            return part
        if (plan.source.size, expected) != (item.bytes, part.sha256):
            have = f"{item.bytes} bytes, sha256 {part.sha256}"
            want = f"{plan.source.size} bytes, sha256 {expected}"
            message = f"the resource is not the file {plan.source.name!r}"
            where = {"file": plan.source.name}
            part.faults.append(Fault("parity.resource_mismatch", 1, where, want, have, message))
        return part
