"""From the rows of a job to prepared work: its files opened, its recipe bound, its tasks known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import cast

from sqlalchemy.orm import Session

from ninfer_core.convert import Draft, Sink
from ninfer_core.convert.draft import without_sink
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.kernels.processor import Processor
from ninfer_core.opening import ArtifactKind
from ninfer_core.recipes import Plan, Recipe, bind, parse_recipe
from ninfer_core.targets import AUTO, TARGETS, Target
from ninfer_core.verify import Asked, asked, prepare
from ninfer_core.verify.against import NO_RECIPE, NO_REGISTERED, NO_SOURCE, Against
from ninfer_core.verify.files import file_digest
from ninfer_core.verify.outcomes import Outcome
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import Report
from ninfer_core.verify.reuse import Known
from ninfer_core.verify.sample import Sample
from ninfer_core.verify.task import Prepared, Task
from service import targets
from service.blobs import Blobs
from service.records import content, conversions, jobs, runs
from service.records.database import Database
from service.records.models import Artifact, Job, Run
from worker import plans, reuse
from worker.errors import RowMissing
from worker.reuse import Digests, Rests
from worker.sources import Sources, StoredFiles
from worker.watch import Ticket, Watch


@dataclass(frozen=True, slots=True)
class Store:
    """Where jobs are read from, and what runs them; `threads` are those of a pool that runs tasks by itself."""

    database: Database
    blobs: Blobs
    watch: Watch
    threads: int
    processor: Callable[[], Processor | None] = lambda: (
        None
    )  # that a pass runs its kernels on; None for this machine's


@dataclass(frozen=True, slots=True)
class Material:
    """What a job names beside its artifact."""

    recipe: str | None
    target: Target | None  # that the recipe fills, where one was named or it was stored with one
    checkpoints: Mapping[str, Mapping[str, str]]  # role -> file name -> sha256
    inputs: Mapping[str, str]  # name -> sha256


class Counting:
    """Counts what a pool does on the ticket of the thread, else on `ticket`: a pool's own threads have none."""

    def __init__(self, watch: Watch) -> None:
        self.ticket: Ticket | None = None
        self._watch = watch

    def __call__(self, count: int) -> None:
        """See `ninfer_core.io.Progress`. Raises: Draining, Cancelled."""
        ticket = self._watch.current() or self.ticket
        if ticket is not None:
            ticket.advance(count)
        else:
            self._watch.check()


@dataclass(slots=True)
class Verification:
    """A verification prepared, with its files open."""

    run: Run
    artifact: Artifact
    against: Against
    rests: Rests | None  # None for a kind, or a file, of which nothing is taken over
    known: Known
    prepared: Prepared
    tasks: Sequence[Task[[], Outcome]]  # those of its sources, then those of `prepared`
    plan: str  # digest of the list of its tasks
    files: StoredFiles
    sources: Sources
    stack: ExitStack

    @property
    def weight(self) -> int:
        """Tasks."""
        return len(self.tasks)

    def conclude(self, outcomes: Iterable[Outcome], ticket: Ticket) -> Report:
        """The report; a file whose content is no longer what was stored is a finding of it."""
        return self.prepared.conclude(self._compared(self.sources.compared(outcomes), ticket))

    def _compared(self, outcomes: Iterable[Outcome], ticket: Ticket) -> Iterator[Outcome]:
        for outcome in outcomes:
            ticket.check()
            if (digest := file_digest(outcome)) is not None:
                self.files.compare(digest)  # the pass asks every file afterwards whether it changed
            yield outcome

    def close(self) -> None:
        """Close its files."""
        self.stack.close()


@dataclass(slots=True)
class Drafted:
    """A conversion planned, with its sources open; no draft where the recipe and its sources do not fit together."""

    draft: Draft | None
    tasks: Sequence[Task[[Sink], Outcome]]  # those of its sources, then those of `draft`
    plan: str  # digest of the list of its tasks; empty without a draft
    sources: Sources
    findings: Findings
    counting: Counting
    stack: ExitStack

    @property
    def weight(self) -> int:
        """Tasks."""
        return len(self.tasks)

    def close(self) -> None:
        """Close its files."""
        self.stack.close()


def open_verification(store: Store, job_id: str) -> Verification:
    """Raises: RowMissing, Usage, CannotRead, Draining, Cancelled."""
    with store.database.read() as session:
        job, run = jobs.get(session, job_id), runs.by_job(session, job_id)
        artifact = content.artifact(session, run.artifact_id) if run is not None else None
        if job is None or run is None or artifact is None:
            raise RowMissing("run", job_id)
        digests = {row.name: row.sha256 for row in content.files(session, artifact.id)}
        inputs = job.request.get("inputs") or {}
        target = _target(session, run.project_id, run.target)
        material = _material(
            session, run.project_id, run.recipe_digest, run.checkpoints or {}, inputs, target
        )
    checks = asked(run.checks)
    with ExitStack() as stack:
        files = StoredFiles(store.blobs, digests, store.watch)
        stack.callback(files.close)
        against, sources = _against(store, stack, job, run, material)
        rests = _rests(files, artifact, checks, against, material)
        known = Known() if rests is None else reuse.known(store.database, job_id, run, rests, digests)
        prepared = prepare(
            cast(ArtifactKind, artifact.kind),
            files,
            artifact.entry,
            checks,
            against,
            known=known,
            workers=store.threads,
            progress=Counting(store.watch),
            processor=store.processor(),
        )
        if known.files is not None and (known.source or "source" not in checks):
            sources = (
                Sources()
            )  # nothing is made of them, so nobody has to know whether they are what they were
        tasks = [*sources.tasks(prepared.pool), *prepared.tasks]
        digest = plans.digest(tasks)
        facts = (run, artifact, against, rests, known)
        return Verification(*facts, prepared, tasks, digest, files, sources, stack.pop_all())


def _rests(
    files: StoredFiles, artifact: Artifact, checks: Asked, against: Against, material: Material
) -> Rests | None:
    if artifact.kind != "ninfer":
        return None
    digests = Digests(against, material.checkpoints, material.inputs)
    return Rests.of(files, artifact.entry, checks, against, digests, Pool(1))


def open_draft(store: Store, job_id: str) -> Drafted:
    """Raises: RowMissing, Usage, CannotRead, Draining, Cancelled."""
    with store.database.read() as session:
        row = conversions.by_job(session, job_id)
        if row is None:
            raise RowMissing("conversion", job_id)
        job = jobs.get(session, job_id)
        target = _target(session, row.project_id, job.request.get("target") if job is not None else None)
        material = _material(session, row.project_id, row.recipe_digest, row.checkpoints, row.inputs, target)
    counting = Counting(store.watch)
    with ExitStack() as stack:
        findings = Findings()
        recipe = _recipe(material, findings)
        plan, sources = None, Sources()
        if recipe is not None:
            plan, found, sources = _bound(store, stack, material, recipe)
            findings.extend(found)
        draft: Draft | None = None
        tasks: list[Task[[Sink], Outcome]] = []
        if plan is not None:
            output = row.output
            pool = Pool(store.threads, counting, store.processor())
            facts = (output["name"], output["revision"], output["max_file_bytes"], pool)
            draft = Draft(plan, *facts, findings)
            tasks += (Task(task.bytes, partial(without_sink, task.run)) for task in sources.tasks(pool))
            tasks += cast(Sequence[Task[[Sink], Outcome]], draft.tasks)
        digest = "" if draft is None else plans.digest(tasks)
        return Drafted(draft, tasks, digest, sources, findings, counting, stack.pop_all())


def _target(session: Session, project_id: str, name: str | None) -> Target | None:
    """The target of a digest; None where none was named, or the artifact itself picks one."""
    if name is None or name == AUTO:
        return None
    found = targets.contract(session, project_id, name)
    if found is None:
        raise RowMissing("target", name)
    return found


def _material(
    session: Session,
    project_id: str,
    recipe_digest: str | None,
    checkpoints: Mapping[str, str],
    inputs: Mapping[str, str],
    target: Target | None,
) -> Material:
    document: str | None = None
    if recipe_digest is not None:
        recipe = content.recipe(session, project_id, recipe_digest)
        if recipe is None:
            raise RowMissing("recipe", recipe_digest)
        document = recipe.document
        target = target or _target(session, project_id, recipe.target_digest)
    folders = {
        role: {row.name: row.sha256 for row in content.checkpoint_files(session, checkpoint_id)}
        for role, checkpoint_id in checkpoints.items()
    }
    return Material(
        document,
        target,
        folders,
        {name: digest.removeprefix(DIGEST_PREFIX) for name, digest in inputs.items()},
    )


def _against(
    store: Store, stack: ExitStack, job: Job, run: Run, material: Material
) -> tuple[Against, Sources]:
    auto = run.target == AUTO
    given = () if run.target is None or material.target is None else (material.target,)
    sample = None if run.sample is None else Sample(run.sample["fraction"], run.sample["seed"])
    against = Against(
        targets=tuple(TARGETS) if auto else given, auto=auto, canonical=run.canonical, sample=sample
    )
    if material.recipe is None:
        if job.request.get("recipe") == AUTO:
            return replace(against, reason=NO_REGISTERED), Sources()
        half = bool(material.checkpoints or material.inputs)
        return (replace(against, reason=NO_RECIPE) if half else against), Sources()
    findings = Findings()
    recipe = _recipe(material, findings)
    if recipe is None:
        return replace(against, findings=findings, reason="the recipe is at fault"), Sources()
    if not material.checkpoints:
        return replace(against, findings=findings, recipe=recipe, reason=NO_SOURCE), Sources()
    plan, found, sources = _bound(store, stack, material, recipe)
    findings.extend(found)
    return replace(against, plan=plan, findings=findings, recipe=recipe), sources


def _recipe(material: Material, findings: Findings) -> Recipe | None:
    if material.recipe is None:
        return None
    return parse_recipe(material.recipe.encode(), findings, target=material.target)


def _bound(
    store: Store, stack: ExitStack, material: Material, recipe: Recipe
) -> tuple[Plan | None, Findings, Sources]:
    """The plan with the files that it reads, or the findings that say why there is none."""
    findings = Findings()
    folders = {
        role: StoredFiles(store.blobs, digests, store.watch) for role, digests in material.checkpoints.items()
    }
    inputs = StoredFiles(store.blobs, material.inputs, store.watch)
    for files in (*folders.values(), inputs):
        stack.callback(files.close)
    try:
        opened = {name: inputs.open(name) for name in inputs.names}
        plan = bind(recipe, folders, opened, findings)
    except CutShort as cut:
        report_cut_short(cut, findings, about="source")
        plan = None
    if plan is None:
        return None, findings, Sources()
    read = [folders[role].opened for role in sorted(folders)]
    return plan, findings, Sources([*chain.from_iterable(read), *inputs.opened])
