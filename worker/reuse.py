"""What a run takes over from earlier ones: results whose words, checks, rule, sources and versions are all the same.

It is decided once, when the run is planned, and kept with it: every worker then plans the same tasks. Files of artifact
and sources are not even hashed when every result is taken over; the report says so and claims nothing of today's disk.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from ninfer_core.containers.directory import Artifact as Directory
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.findings import Finding, Findings
from ninfer_core.identity import FileDigest, canonical_digest
from ninfer_core.io import FileSet
from ninfer_core.verify import Asked
from ninfer_core.verify.against import Against
from ninfer_core.verify.basis import Basis, settle
from ninfer_core.verify.entries import Entries
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import ObjectResult, Report, Reused, versions
from ninfer_core.verify.reuse import Known, object_key
from service.records import identities, jobs, reuse, runs
from service.records.database import Database
from service.records.models import Result, Run
from worker.errors import RowMissing


@dataclass(slots=True)
class Digests:
    """Names of what a recipe reads (a `SourceDigests`): a tensor is a range of bytes in a file with a digest."""

    against: Against
    files: Mapping[str, Mapping[str, str]]  # role -> file name -> sha256
    inputs: Mapping[str, str]  # name -> sha256
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def tensor(self, role: str, name: str) -> str:
        """See `SourceDigests.tensor`."""
        if (role, name) not in self._known:
            plan = self.against.plan
            if plan is None:
                raise RowMissing("source", role)
            tensor = plan.checkpoints[role].tensors[name]
            self._known[role, name] = canonical_digest(
                {
                    "file": self.files[role][tensor.file],
                    "begin": tensor.offset,
                    "end": tensor.offset + tensor.bytes,
                    "dtype": tensor.dtype,
                    "shape": list(tensor.shape),
                }
            )
        return self._known[role, name]

    def file(self, role: str | None, name: str) -> str:
        """See `SourceDigests.file`."""
        return self.inputs[name] if role is None else self.files[role][name]


@dataclass(frozen=True, slots=True)
class Rests:
    """What the results of a run rest on, object by object; `related` are the objects seen together with one."""

    directory: Directory
    asked: Asked
    against: Against
    basis: Basis
    digests: Digests
    related: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(
        cls, files: FileSet, entry: str, asked: Asked, against: Against, digests: Digests, pool: Pool
    ) -> "Rests | None":
        """None where there is no directory to read. Raises: CannotRead."""
        directory = read_artifact(files, entry, Findings())
        if directory is None:
            return None
        basis = settle(directory, asked, against, Findings(), pool)
        related: dict[int, tuple[int, ...]] = {}
        for relation in basis.relations:
            for ordinal in relation.ordinals:
                related[ordinal] = (*related.get(ordinal, ()), *relation.ordinals)
        return cls(directory, asked, against, basis, digests, related)

    def keys(self, known: Mapping[int, str]) -> dict[int, str]:
        """Keys by ordinal, for objects whose identity is known, and that of every object related to it."""
        found: dict[int, str] = {}
        for item in self.directory.readable:
            identity = known.get(item.ordinal)
            beside = [known.get(ordinal) for ordinal in self.related.get(item.ordinal, ())]
            if identity is None or None in beside or item.ordinal in self.basis.unjudged:
                continue
            related = [one for one in beside if one is not None]
            document = self.against.document
            if related and document is not None:
                related.append(document.digest)  # what it says of the relation
            if (pin := self.basis.pins.get(item.ordinal)) is not None:
                related.append(f"pinned {pin.bytes} {pin.sha256}")
            found[item.ordinal] = object_key(
                identity,
                self.asked,
                self.against,
                self.basis.plans.get(item.name),
                self.basis.claims.get(item.ordinal, ()),
                self.digests,
                related,
            )
        return found

    @property
    def source_key(self) -> str | None:
        """Of everything that check `source` looks at; None where there is no plan."""
        plan = self.against.plan
        if plan is None or "source" not in self.asked:
            return None
        return canonical_digest(
            {
                "recipe": plan.recipe.digest,
                "target": None if plan.target is None else plan.target.digest,
                "checkpoints": {role: dict(files) for role, files in self.digests.files.items()},
                "inputs": dict(self.digests.inputs),
                "versions": versions(),
            }
        )


def known(database: Database, job_id: str, run: Run, rests: Rests, files: Mapping[str, str]) -> Known:
    """What need not be read again; `files` are the sha256 under which the artifact's files were stored, by name.

    Raises: RowMissing.
    """
    decision = run.reuse
    if run.full and decision is None:
        return Known()
    with database.read() as session:
        job = jobs.get(session, job_id)
        keys = {} if run.full else rests.keys(identities.of_artifact(session, run.artifact_id))
        if decision is None and not run.full and job is not None and job.objects is None:
            decision = _choose(session, run, rests, keys)
        elif decision is None:
            decision = _NOTHING
    if run.reuse is None and decision is not _NOTHING:
        with database.write() as session:
            jobs.locked(session, job_id)  # first, as everywhere
            decision = reuse.decide(session, run.id, decision)
    if not decision["runs"] and decision["source"] is None:
        return Known()
    objects = dict(_taken(database, decision, rests, keys))
    directory = rests.directory
    if not objects or not directory.whole or any(item.ordinal not in objects for item in directory.readable):
        return Known(None, objects, decision["source"] is not None)
    stored = tuple(FileDigest(source.name, source.size, files[source.name]) for source in directory.sources)
    return Known(stored, objects, decision["source"] is not None)


_NOTHING: dict[str, Any] = {"runs": {}, "source": None}


def _choose(session: Session, run: Run, rests: Rests, keys: Mapping[int, str]) -> dict[str, Any]:
    since = reuse.oldest(run.max_age_seconds)
    found = reuse.found(session, run.project_id, keys.values(), since)
    whose: dict[str, list[int]] = {}
    for ordinal, key in keys.items():
        if key in found:
            whose.setdefault(found[key], []).append(ordinal)
    source = rests.source_key
    return {
        "runs": {run_id: reuse.spans(ordinals) for run_id, ordinals in sorted(whose.items())},
        "source": None if source is None else reuse.source_run(session, run.project_id, source, since),
    }


def _taken(
    database: Database, decision: Mapping[str, Any], rests: Rests, keys: Mapping[int, str]
) -> Iterable[tuple[int, ObjectResult]]:
    entries = Entries(rests.directory, rests.asked, rests.basis)
    for run_id, spans in decision["runs"].items():
        ordinals = [ordinal for first, last in spans for ordinal in range(first, last + 1)]
        with database.read() as session:
            ended = runs.ended(session, [run_id])
            rows = reuse.results(session, run_id, [keys[ordinal] for ordinal in ordinals])
        if run_id not in ended:
            raise RowMissing("run", run_id)
        taken = Reused(run_id, ended[run_id].isoformat())
        for ordinal in ordinals:
            row = rows.get(keys[ordinal])
            if row is None:
                raise RowMissing("result", f"{run_id} {ordinal}")
            yield ordinal, _result(entries[ordinal], row, taken)


def _result(entry: ObjectResult, row: Result, taken: Reused) -> ObjectResult:
    return replace(
        entry,
        covered=entry.concerns,
        sha256=row.sha256,
        identity=row.identity,
        evidence=row.evidence,
        metrics=row.metrics,
        reused=taken,
    )


def reusable(rests: Rests | None, report: Report) -> dict[int, str]:
    """Keys of the results that later runs may take over: wholly covered here, passed, and without any finding."""
    if rests is None or report.unlisted or any(map(_of_all, report.findings)):
        return {}  # of findings that are not listed nobody knows whom they are about
    noted = {item.object for item in report.findings}
    related = rests.related if any(item.check == "relations" for item in report.findings) else {}
    measured = {item.ordinal: item.identity for item in report.objects if item.identity is not None}
    clean = {
        item.ordinal
        for item in report.objects
        if item.coverage == "full" and item.outcome == "passed" and item.name not in noted
    }
    keys = rests.keys(measured)
    return {place: key for place, key in keys.items() if place in clean and place not in related}


def _of_all(item: Finding) -> bool:
    """Whether it casts doubt on every result: sources or files that are not what they were stored as, for one.

    Advisories about recipe, sources and target do not: whoever takes results over binds anew, and says them again.
    """
    return item.severity == "error" and (item.about != "artifact" or item.object is None)


def source_key(rests: Rests | None, report: Report) -> str | None:
    """The key of sources that this very run looked through and found in order; what binding advises of them may stand."""
    checks = {check.name: (check.outcome, check.coverage) for check in report.checks}
    if rests is None or checks.get("source") != ("passed", "full"):
        return None
    if any(map(_of_all, report.findings)):
        return None
    return rests.source_key
