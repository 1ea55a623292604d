"""The engine for `.ninfer` artifacts: read the directory, plan tasks by bytes, one pass, merge in order."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ninfer_core.containers.directory import Artifact, ResourceObject, TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.file_findings import report_changes, report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet, sha256
from ninfer_core.recipes.plan import ResourcePlan, TensorPlan, report_source_changes
from ninfer_core.recipes.preflight import source_tasks
from ninfer_core.verify import unreferenced
from ninfer_core.verify.against import Against
from ninfer_core.verify.basis import Basis, settle
from ninfer_core.verify.checks import LISTING_CHECKS, Asked, CheckName
from ninfer_core.verify.entries import Entries
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.files import digest_tasks, take_digests
from ninfer_core.verify.held import HeldByFile, of_artifact
from ninfer_core.verify.outcomes import Outcome, Outcomes, Part, Unread
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import Report, conclude
from ninfer_core.verify.reuse import Known
from ninfer_core.verify.task import Prepared, Task
from ninfer_core.verify.totals import Totals


def prepare_ninfer(
    files: FileSet, entry: str, asked: Asked, against: Against | None, pool: Pool, known: Known
) -> Prepared:
    """One artifact, its directory read; every fault of the file is a finding.

    Raises: CannotRead when the entry cannot be opened.
    """
    findings = Findings()
    against = against if against is not None else Against()
    artifact = read_artifact(files, entry, findings)
    findings.extend(against.findings)
    if artifact is None:
        return _NoDirectory(files.open(entry), asked, against, findings, pool)
    basis = settle(artifact, asked, against, findings, pool)
    return _Pass(artifact, asked, against, basis, known, findings, pool)


class _NoDirectory:
    """A file with nothing in it to check: its digest alone says which bytes were judged."""

    def __init__(
        self, source: ByteSource, asked: Asked, against: Against, findings: Findings, pool: Pool
    ) -> None:
        self.totals = Totals(0, source.size)
        self.tasks: Sequence[Task[[], Outcome]] = tuple(digest_tasks((source,), pool))
        self.pool = pool
        self._asked, self._against, self._findings = asked, against, findings

    def conclude(self, outcomes: Iterable[Outcome]) -> Report:
        """See `Prepared.conclude`."""
        findings = Findings()
        findings.extend(self._findings)
        done = Outcomes(outcomes)
        digests = take_digests(1, done, findings).files
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
            self._against.recipe_json,
        )


class _Pass:
    """An artifact with a directory: files, unreferenced bytes, sources, relations, then every readable object.

    Where no check reads a word, nothing is digested either: a directory is judged in the time it takes to read it.
    """

    def __init__(
        self,
        artifact: Artifact,
        asked: Asked,
        against: Against,
        basis: Basis,
        known: Known,
        findings: Findings,
        pool: Pool,
    ) -> None:
        self.pool = pool
        self._artifact, self._asked, self._against, self._basis = artifact, asked, against, basis
        self._known, self._findings = known, findings
        self._digested = known.digests or bool(asked.checks - LISTING_CHECKS)
        items = artifact.readable if self._digested else ()
        held = sum(item.bytes for item in artifact.readable)
        stored = sum(source.size for source in artifact.sources)
        tasks: list[Task[[], Outcome]] = []
        self._held: HeldByFile = ()
        if self._digested and known.files is None:
            self._held = of_artifact(
                artifact, [one for one in artifact.tensors if one.ordinal not in known.objects]
            )
            tasks += digest_tasks(artifact.sources, pool, self._held)
        self._files = len(tasks)
        with_files = {one.ordinal for objects in self._held for one in objects}
        scan = partial(unreferenced.scan, artifact, pool, self._canonical)
        tasks.append(Task(max(0, stored - held), scan))
        before = len(tasks)
        compared = source_tasks(against.plan, pool) if "source" in asked and against.plan is not None else []
        if not known.source:
            tasks += (Task(one.bytes, partial(_guarded, one.run)) for one in compared)
        self._source_reused = known.source and bool(compared)
        self._answers = len(tasks) - before
        self._relations = [
            relation
            for relation in basis.relations
            if not relation.ordinals or not known.objects.keys() >= set(relation.ordinals)
        ]
        tasks += [relation.task for relation in self._relations if relation.task is not None]
        self._counts: list[int] = []  # tasks of each readable object
        self._again = 0  # bytes of objects whose words are looked at
        for item in items:
            before = len(tasks)
            if item.ordinal not in known.objects:
                tasks += self._object_tasks(item, item.ordinal in with_files)
            self._counts.append(len(tasks) - before)
        if not self._digested:  # nothing in it counts by itself
            tasks = [Task(one.bytes, partial(_counted, pool, one)) for one in tasks]
        self.tasks: Sequence[Task[[], Outcome]] = tasks
        self.totals = Totals(len(artifact.objects), self._bytes_ahead(stored))

    @property
    def _canonical(self) -> bool | None:
        """Whether check `inventory` demands canonical placement; None where it did not run."""
        return None if self._basis.target is None else self._against.canonical

    def conclude(self, outcomes: Iterable[Outcome]) -> Report:
        """See `Prepared.conclude`."""
        artifact, basis = self._artifact, self._basis
        findings = Findings()
        findings.extend(self._findings)
        skipped = dict(basis.skipped)
        if not artifact.listed:
            # Nothing can be said of objects that were never read: no check of them is complete.
            skipped |= dict.fromkeys(self._asked.checks, "the list of objects could not be read")
        done = Outcomes(outcomes)
        taken = take_digests(self._files, done, findings, self._held)
        scanned = done.take(Findings)
        for _ in range(self._answers):
            answer = done.take(Findings, CannotRead)
            if isinstance(answer, Findings):
                findings.extend(answer)
            else:
                skipped["source"] = str(answer)
        unrelated = self._take_relations(done, findings, skipped)
        entries = Entries(artifact, self._asked, basis)
        sample = None
        if self._digested:
            sample = self._merge_objects(done, taken.objects, entries, unrelated, findings)
        if not self._digested:
            entries.cover_listed()
        done.end()
        if basis.sound:  # else nobody knows which bytes lie between objects
            findings.extend(scanned)
        if taken.unread:
            skipped["structure"] = taken.unread[0]
        report_changes(artifact.sources, findings)
        if self._against.plan is not None:
            report_source_changes(self._against.plan, findings)
        results = entries.results(findings)
        digests = self._known.files or taken.files
        checks, verdict = conclude(self._asked, results, findings, skipped, basis.idle)
        if self._source_reused:  # whose words were compared by an earlier run
            checks = tuple(
                replace(check, coverage="reused")
                if (check.name, check.outcome) == ("source", "passed")
                else check
                for check in checks
            )
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
            self._against.recipe_json,
            basis.target_json,
            sample,
            None if digests or self._digested else sum(source.size for source in artifact.sources),
        )

    def _merge_objects(
        self,
        done: Outcomes,
        digests: Mapping[int, str | Unread],
        entries: Entries,
        unrelated: Mapping[int, str],
        findings: Findings,
    ) -> dict[str, Any] | None:
        """Every readable object merged or taken over; what was sampled, if anything was."""
        from ninfer_core.verify.objects import Merge  # brings in the compiler

        artifact, sample = self._artifact, self._against.sample
        merge = Merge(artifact, self._asked, self._basis, entries, sample, unrelated, findings)
        for item, count in zip(artifact.readable, self._counts, strict=True):
            known = self._known.objects.get(item.ordinal)
            if known is not None:
                entries.reuse(known)
            else:
                parts = [done.take(Part) for _ in range(count)]
                merge.take(item, [*_of_digest(digests.get(item.ordinal)), *parts])
        return merge.sample_json

    def _take_relations(
        self, done: Outcomes, findings: Findings, skipped: dict[CheckName, str]
    ) -> dict[int, str]:
        """Why check `relations` could not be done, by the ordinal of each object that it leaves open."""
        unrelated: dict[int, str] = {}
        for relation in self._relations:
            answer = done.take(Findings, CutShort, CannotRead) if relation.task is not None else None
            if isinstance(answer, Findings):
                findings.extend(answer)
                continue
            if isinstance(answer, CutShort):
                report_cut_short(answer, findings)
            why = relation.reason or f"{relation.rule}: {answer}"
            unrelated |= dict.fromkeys(relation.ordinals, why)
            if not relation.ordinals:
                skipped.setdefault("relations", why)
        return unrelated

    def _bytes_ahead(self, stored: int) -> int:
        """What will be read or hashed: files, objects and, where checks read words, these once more."""
        if not self._digested:
            return sum(task.bytes for task in self.tasks)
        read = [item for item in self._artifact.readable if item.ordinal not in self._known.objects]
        return (0 if self._known.files else stored) + sum(item.bytes for item in read) + self._again

    def _object_tasks(self, item: TensorObject | ResourceObject, with_file: bool) -> Iterator[Task[[], Part]]:
        """Those of one object; its digest may come `with_file`."""
        plan = self._basis.plans.get(item.name)
        if isinstance(item, TensorObject):
            from ninfer_core.verify.tensor import (
                TensorPass,  # brings in the compiler, which listing does without
            )

            tensor_plan = plan if isinstance(plan, TensorPlan) else None
            claims = self._basis.claims.get(item.ordinal, ())
            payload, sample = self._artifact.payload, self._against.sample
            facts = (item, payload, self._asked, tensor_plan, claims, sample)
            steps = TensorPass(*facts, self.pool, digested=with_file)
            self._again += steps.bytes_ahead
            yield from steps.tasks()
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


def _counted(pool: Pool, task: Task[[], Outcome]) -> Outcome:
    outcome = task.run()
    pool.advance(task.bytes)
    return outcome


def _of_digest(found: str | Unread | None) -> list[Part]:
    if found is None:
        return []
    return [Part(sha256=found) if isinstance(found, str) else Part(error=found)]


def _guarded(run: Callable[[], Findings]) -> Findings | CannotRead:
    try:
        return run()
    except CannotRead as error:
        return error
