"""A pass as an ordered list of tasks and one merge: whoever runs the tasks, wherever, the answer is the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, ParamSpec, Protocol, TypeVar

from ninfer_core.verify.totals import Totals

if TYPE_CHECKING:
    from ninfer_core.verify.outcomes import Outcome
    from ninfer_core.verify.pool import Pool
    from ninfer_core.verify.report import Report

Given = ParamSpec("Given")
Found = TypeVar("Found", covariant=True)


@dataclass(frozen=True, slots=True)
class Task(Generic[Given, Found]):
    """One step of a pass. `run` may be called again, by any thread, and depends on no other task.

    A verification's takes nothing, a conversion's the sink that it writes to; what is wrong with a file is in the
    outcome. Raises, when run: Stopped, and whatever the pool's progress raises.
    """

    bytes: int  # about what it reads, to plan shards by
    run: Callable[Given, Found]


class Prepared(Protocol):
    """A verification whose directory is read and whose tasks are known.

    `tasks` are in the order of the merge, the same for the same files, checks and plan on every machine.
    """

    @property
    def totals(self) -> Totals: ...

    @property
    def tasks(self) -> "Sequence[Task[[], Outcome]]": ...

    @property
    def pool(self) -> "Pool": ...

    def conclude(self, outcomes: "Iterable[Outcome]") -> "Report":
        """The report, from the outcomes of all tasks in their order; they are consumed as they come.

        Raises: OutOfStep when these are not the outcomes of these tasks.
        """
        ...


def shards(tasks: "Sequence[Task[..., object]]", shard_bytes: int) -> tuple[range, ...]:
    """Consecutive runs of task numbers of at most `shard_bytes` each; a task that is larger stands alone."""
    return tuple(_shards(tasks, shard_bytes))


def _shards(tasks: "Sequence[Task[..., object]]", shard_bytes: int) -> Iterator[range]:
    begin, filled = 0, 0
    for number, task in enumerate(tasks):
        if number > begin and filled + task.bytes > shard_bytes:
            yield range(begin, number)
            begin, filled = number, 0
        filled += task.bytes
    if begin < len(tasks):
        yield range(begin, len(tasks))
