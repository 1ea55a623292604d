"""Tasks: how they are cut into shards, and who may run them."""

import threading
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.errors import OutOfStep
from ninfer_core.formats import BF16, FP32
from ninfer_core.identity import FileDigest
from ninfer_core.opening import open_path
from ninfer_core.verify import asked, prepare, verify
from ninfer_core.verify.outcomes import Outcome, Part
from ninfer_core.verify.pool import Pool, Stopped
from ninfer_core.verify.task import Task, shards
from tests.build import EVERYTHING, write_artifact
from tests.shards import prepared, small_blocks

BYTES = {"a": (BF16, (40,), np.arange(80, dtype=np.uint8)), "b": (FP32, (3,), np.ones(12, np.uint8))}


@given(st.lists(st.integers(0, 9)), st.integers(0, 20))
def test_shards_cover_every_task_and_keep_the_limit(sizes: list[int], limit: int):
    tasks = [Task(size, lambda: None) for size in sizes]
    cut = shards(tasks, limit)
    assert [number for numbers in cut for number in numbers] == list(range(len(sizes)))
    assert all(numbers for numbers in cut)
    assert all(sum(sizes[number] for number in numbers) <= limit or len(numbers) == 1 for numbers in cut)
    for left, right in pairwise(cut):  # no shard is left smaller than it had to be
        assert sum(sizes[number] for number in (*left, right[0])) > limit


def test_the_tasks_of_a_file_say_what_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_artifact(tmp_path / "a.ninfer", BYTES)
    size = path.stat().st_size
    with ExitStack() as stack:
        whole = [task.bytes for task in prepared(path, None, EVERYTHING, stack).tasks]
        small_blocks(monkeypatch, 128)
        again = [task.bytes for task in prepared(path, None, EVERYTHING, stack).tasks]
    assert whole == [size, size - 92, 80, 12]
    assert again == [size, size - 92, 80, 0, 80, 12, 0, 12]  # digest, gaps, and the one block of each


class Cancelled(Exception):
    """What a service raises out of its progress."""


def test_threads_of_the_caller_run_tasks_and_one_that_is_cancelled_stops_no_other(tmp_path: Path):
    victims: set[int] = set()

    def progress(_: int) -> None:
        if threading.get_ident() in victims:
            raise Cancelled

    path = write_artifact(tmp_path / "a.ninfer", BYTES)
    with open_path(path) as opened:
        ahead = prepare("ninfer", opened.files, opened.entry, asked(EVERYTHING), progress=progress)
        found: dict[str, list[Outcome]] = {"good": [], "bad": []}
        raised: list[BaseException] = []

        def work(name: str) -> None:
            if name == "bad":
                victims.add(threading.get_ident())
            for task in ahead.tasks:
                try:
                    found[name].append(task.run())
                except Cancelled as error:
                    raised.append(error)
            victims.discard(threading.get_ident())

        threads = [threading.Thread(target=work, args=(name,)) for name in ("bad", "good")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(raised), found["bad"]) == (len(ahead.tasks), [])
        report = ahead.conclude(found["good"])
        assert report.as_json() == ahead.conclude(iter(found["good"])).as_json()  # and may be asked again
        assert report.as_json() == verify(opened, asked(EVERYTHING)).as_json()


def test_within_a_run_the_first_exception_stops_the_rest():
    pool = Pool(2, lambda _: (_ for _ in ()).throw(Cancelled))
    with pytest.raises(Cancelled):
        pool.run([pool.check] * 8)
    with pytest.raises(Stopped):
        pool.check()


@pytest.mark.parametrize("change", ["one less", "one more", "another kind", "another order"])
def test_outcomes_of_other_tasks_are_refused(change: str, tmp_path: Path):
    with ExitStack() as stack:
        ahead = prepared(write_artifact(tmp_path / "a.ninfer", BYTES), None, EVERYTHING, stack)
        outcomes = [task.run() for task in ahead.tasks]
        match change:
            case "one less":
                outcomes.pop()
            case "one more":
                outcomes.append(Part())
            case "another kind":
                outcomes[-1] = FileDigest("a", 1, "00")
            case "another order":
                outcomes.reverse()
        with pytest.raises(OutOfStep):
            ahead.conclude(outcomes)
