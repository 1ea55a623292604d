"""From the rows of a comparison to prepared work: the files of both artifacts opened, its tasks known."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ninfer_core.compare import prepare
from ninfer_core.compare.comparison import Comparison
from ninfer_core.compare.engine import Prepared
from ninfer_core.compare.outcomes import Outcome
from ninfer_core.identity import FileDigest
from ninfer_core.verify.task import Task
from service.records import comparisons, content
from worker import plans
from worker.errors import RowMissing
from worker.preparing import Counting, Store
from worker.sources import StoredFiles
from worker.watch import Ticket


@dataclass(slots=True)
class Comparing:
    """A comparison prepared, with its files open."""

    prepared: Prepared
    plan: str  # digest of the list of its tasks
    files: tuple[StoredFiles, StoredFiles]
    stack: ExitStack

    @property
    def tasks(self) -> Sequence[Task[[], Outcome]]:
        """Those of the core."""
        return self.prepared.tasks

    @property
    def weight(self) -> int:
        """Tasks."""
        return len(self.tasks)

    def conclude(self, outcomes: Iterable[Outcome], ticket: Ticket) -> Comparison:
        """The comparison; a file whose content is no longer what was stored is a finding of its side."""
        return self.prepared.conclude(self._held_against_the_store(outcomes, ticket))

    def _held_against_the_store(self, outcomes: Iterable[Outcome], ticket: Ticket) -> Iterator[Outcome]:
        of_a = self.prepared.files[0]
        for number, outcome in enumerate(outcomes):
            ticket.check()
            if isinstance(outcome, FileDigest):
                # The merge asks every file afterwards whether it changed; both may have files of one name.
                self.files[0 if number < of_a else 1].compare(outcome)
            yield outcome

    def close(self) -> None:
        """Close its files."""
        self.stack.close()


def open_comparison(store: Store, job_id: str) -> Comparing:
    """Raises: RowMissing, CannotRead, Draining, Cancelled."""
    with store.database.read() as session:
        row = comparisons.by_job(session, job_id)
        if row is None:
            raise RowMissing("comparison", job_id)
        ids = (row.a_artifact_id, row.b_artifact_id)
        artifacts = [content.artifact(session, id_) for id_ in ids]
        digests = [{file.name: file.sha256 for file in content.files(session, id_)} for id_ in ids]
    entries = [artifact.entry for artifact in artifacts if artifact is not None]
    if len(entries) != len(ids):
        raise RowMissing("artifact", " or ".join(ids))
    with ExitStack() as stack:
        a, b = (StoredFiles(store.blobs, one, store.watch) for one in digests)
        stack.callback(a.close)
        stack.callback(b.close)
        counting = Counting(store.watch)
        prepared = prepare((a, entries[0]), (b, entries[1]), workers=store.threads, progress=counting)
        return Comparing(prepared, plans.digest(prepared.tasks), (a, b), stack.pop_all())
