"""The comparison of two `.ninfer` artifacts as an ordered list of tasks and one merge, as a verification is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ninfer_core.compare.comparison import Compares, Comparison, ObjectComparison, Status
from ninfer_core.compare.facts import facts
from ninfer_core.compare.metrics import no_metrics, pair_metrics
from ninfer_core.compare.outcomes import Compared, Outcome
from ninfer_core.compare.pairs import Pair, PairPass, Payloads, pairs
from ninfer_core.containers.directory import Artifact, ArtifactObject, ResourceObject, TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_changes, report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import content_root, resource_identity, tensor_identity
from ninfer_core.io import ByteSource, FileSet
from ninfer_core.verify.files import digest_tasks, take_digests
from ninfer_core.verify.outcomes import Outcomes, Unread
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task
from ninfer_core.verify.totals import Totals


@dataclass(frozen=True, slots=True)
class _Whole:
    """One of the two artifacts; without a directory there are its entry file and findings."""

    artifact: Artifact | None
    sources: tuple[ByteSource, ...]
    findings: Findings

    @property
    def payload(self) -> ByteSource | None:
        return None if self.artifact is None else self.artifact.payload

    @property
    def listed(self) -> bool:
        return self.artifact is not None and self.artifact.listed


class Prepared:
    """A comparison whose directories are read and whose tasks are known: the files of A and B, then every pair.

    `tasks` are in the order of the merge, the same for the same files on every machine.
    """

    def __init__(self, a: tuple[FileSet, str], b: tuple[FileSet, str], pool: Pool) -> None:
        """Raises: CannotRead when an entry cannot be opened."""
        self.pool = pool
        self._a, self._b = _open(*a), _open(*b)
        payloads = Payloads(self._a.payload, self._b.payload, pool)
        self._pairs = tuple(pairs(self._a.artifact, self._b.artifact))
        files = (*self._a.sources, *self._b.sources)
        self.files = len(self._a.sources), len(self._b.sources)  # whose digests the first outcomes are
        self.tasks: Sequence[Task[[], Outcome]] = (
            *digest_tasks(files, pool),
            *(PairPass(pair, payloads).task() for pair in self._pairs),
        )
        self.totals = Totals(len(self._pairs), sum(task.bytes for task in self.tasks))

    def conclude(self, outcomes: Iterable[Outcome]) -> Comparison:
        """The comparison, from the outcomes of all tasks in their order; they are consumed as they come.

        Raises: OutOfStep when these are not the outcomes of these tasks.
        """
        done = Outcomes(outcomes)
        merges = (_Merge(self._a), _Merge(self._b))
        for merge in merges:
            merge.take_files(done)
        listed = self._a.listed and self._b.listed
        objects = [
            _result(ordinal, pair, done.take(Compared), merges, listed)
            for ordinal, pair in enumerate(self._pairs)
        ]
        done.end()
        _name_moved(objects)
        a, b = (merge.conclude() for merge in merges)
        sound = not (self._a.findings.errors or self._b.findings.errors)
        found = facts(self._a.artifact, self._b.artifact, sound=sound)
        return Comparison(a, b, tuple(objects), found)


def _open(files: FileSet, entry: str) -> _Whole:
    findings = Findings()
    artifact = read_artifact(files, entry, findings)
    return _Whole(artifact, (files.open(entry),) if artifact is None else artifact.sources, findings)


class _Merge:
    """What the tasks found out about one of the two artifacts."""

    def __init__(self, whole: _Whole) -> None:
        self._whole = whole
        self._findings = Findings()
        self._findings.extend(whole.findings)
        self._identities: list[tuple[str, str]] = []
        self._complete = whole.artifact is not None and whole.artifact.whole
        self._count = 0 if whole.artifact is None else len(whole.artifact.objects)

    def take_files(self, done: Outcomes) -> None:
        self._files = take_digests(len(self._whole.sources), done, self._findings).files
        if self._whole.artifact is None:
            self._complete = len(self._files) == 1
        self._complete &= len(self._files) == len(self._whole.sources)

    def identity(self, item: ArtifactObject | None, sha256: str | None) -> str | None:
        """Of an object of this artifact, which counts for its content root."""
        if sha256 is None or not isinstance(item, TensorObject | ResourceObject):
            return None
        found = (
            tensor_identity(item.format.name, item.shape, item.layout.name, sha256)
            if isinstance(item, TensorObject)
            else resource_identity(item.encoding, sha256)
        )
        self._identities.append((item.name, found))
        return found

    def unread(self, item: ArtifactObject | None, error: Unread | None) -> None:
        if isinstance(error, CutShort) and item is not None:
            report_cut_short(error, self._findings, item.name, item.ordinal)

    def conclude(self) -> Compares:
        artifact, findings = self._whole.artifact, self._findings
        report_changes(self._whole.sources, findings)
        root = None
        if self._whole.listed and len(self._identities) == self._count:
            root = content_root(self._identities)
        return Compares(
            "ninfer",
            None if artifact is None else artifact.revision,
            None if artifact is None else artifact.model_id,
            None if artifact is None else artifact.weights_id,
            None if artifact is None else artifact.name,
            self._files,
            self._complete,
            self._whole.listed,
            root,
            tuple(findings),
            dict(findings.unlisted),
        )


def _result(
    ordinal: int, pair: Pair, found: Compared, merges: tuple[_Merge, _Merge], listed: bool
) -> ObjectComparison:
    result = ObjectComparison(ordinal, pair.name, "unreadable", pair.a, pair.b, found.a, found.b)
    result.a_identity = merges[0].identity(pair.a, found.a)
    result.b_identity = merges[1].identity(pair.b, found.b)
    merges[0].unread(pair.a, found.a_error)
    merges[1].unread(pair.b, found.b_error)
    error = found.a_error or found.b_error
    if pair.unreadable:
        result.reason = "the object's entry is broken or its bytes are missing"
    elif error is not None:
        result.reason = str(error)
    elif pair.a is None or pair.b is None:
        if listed:
            result.status = "added" if pair.a is None else "removed"
        else:
            result.reason = "the other side's list of objects could not be read"
    else:
        result.status, result.reason = _status(pair, found, result)
        if result.status in ("changed", "re-encoded", "re-packed"):
            result.metrics = _metrics(pair, found, result.reason)
    return result


def _status(pair: Pair, found: Compared, result: ObjectComparison) -> tuple[Status, str | None]:
    if result.a_identity == result.b_identity:
        return "identical", None
    a, b = pair.a, pair.b
    if not (isinstance(a, TensorObject) and isinstance(b, TensorObject)):
        same_kind = isinstance(a, ResourceObject) and isinstance(b, ResourceObject)
        return "changed", "a resource has bytes and no values" if same_kind else "another kind of object"
    if a.shape != b.shape:
        return "changed", f"another shape: {list(a.shape)} in A, {list(b.shape)} in B"
    if a.format != b.format:
        return "re-encoded", None
    return ("changed" if found.changes is not None and found.changes.any else "re-packed"), None


def _metrics(pair: Pair, found: Compared, reason: str | None) -> dict[str, object]:
    tensors = pair.tensors
    if tensors is None:
        return no_metrics(reason or "")
    return pair_metrics(tensors[0].shape, found.changes, found.sums, found.no_values)


def _name_moved(objects: Sequence[ObjectComparison]) -> None:
    """Objects that only one side has, and whose content the other has under another such name."""
    removed = _first_names(item for item in objects if item.status == "removed")
    added = _first_names(item for item in objects if item.status == "added")
    for item in objects:
        if item.status == "removed" and item.a_identity is not None:
            item.same_content_as = added.get(item.a_identity)
        elif item.status == "added" and item.b_identity is not None:
            item.same_content_as = removed.get(item.b_identity)


def _first_names(objects: Iterable[ObjectComparison]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in objects:
        identity = item.a_identity or item.b_identity
        if identity is not None:
            found.setdefault(identity, item.name)
    return found
