"""Threads go to lanes by weight, none is left idle, and what waits for a person never waits for more than what runs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from service.lanes import BULK, INTERACTIVE
from tests.worker.rig import until
from worker.lanes import Lanes


class Held:
    """Pieces that come in from many sides and are let go one by one."""

    def __init__(self, lanes: Lanes, callers: ThreadPoolExecutor) -> None:
        self.begun: list[str] = []
        self._lanes, self._callers = lanes, callers
        self._go = threading.Semaphore(0)

    def ask(self, lane: str, count: int = 1) -> None:
        """So many pieces of a lane; they wait when this returns, or run."""
        for _ in range(count):
            before = self._known()
            self._callers.submit(self._lanes.run, lane, lambda: self._work(lane))
            until("it is known", lambda: self._known() > before, 10, 0.001)  # noqa: B023

    def let(self, count: int) -> None:
        """Let so many end, one after the other, and wait until the next have begun."""
        for _ in range(count):
            begun = len(self.begun)
            self._go.release()
            if self._waiting():
                until("the next begins", lambda: len(self.begun) > begun, 10, 0.001)  # noqa: B023

    def _work(self, lane: str) -> None:
        self.begun.append(lane)
        self._go.acquire()

    def _waiting(self) -> int:
        return sum(map(len, self._lanes._waiting.values()))

    def _known(self) -> int:
        return self._waiting() + len(self.begun)


@contextmanager
def held(threads: int, interactive: int = 4, bulk: int = 1) -> Iterator[Held]:
    lanes = Lanes(threads, {INTERACTIVE: interactive, BULK: bulk})
    with ThreadPoolExecutor(100) as callers:
        made = Held(lanes, callers)
        try:
            yield made
        finally:
            made._go.release(1_000)
    lanes.close()


@pytest.mark.parametrize(("interactive", "bulk"), [(4, 1), (1, 1), (2, 3)])
def test_shares_follow_the_weights(interactive: int, bulk: int) -> None:
    with held(1, interactive, bulk) as made:
        made.ask(BULK, 25)
        made.ask(INTERACTIVE, 25)
        made.let(20)
        begun = made.begun[:20]
    assert abs(begun.count(BULK) - 20 * bulk / (interactive + bulk)) <= 1


def test_an_idle_lane_gives_its_share_away_and_has_no_claim_to_it_later() -> None:
    with held(2) as made:
        made.ask(BULK, 14)
        made.let(10)
        assert made.begun == [BULK] * 12
        made.ask(INTERACTIVE, 12)
        made.let(10)
        # Of ten, bulk work gets about its fifth, though it has had everything before.
        assert made.begun[12:22].count(BULK) in (1, 2)


def test_what_is_interactive_goes_before_all_bulk_work_that_waits() -> None:
    with held(2) as made:
        made.ask(BULK, 30)
        made.let(7)
        made.ask(INTERACTIVE)
        made.let(1)
        assert made.begun[9:] == [INTERACTIVE]


def test_bulk_work_leaves_a_thread_while_something_little_runs_beside() -> None:
    with held(2) as made:
        with made._lanes.beside():
            made.ask(BULK, 4)
            until("the first begins", lambda: made.begun == [BULK], 10, 0.001)
            made.ask(INTERACTIVE)  # which gets the other thread
            until("it begins", lambda: made.begun == [BULK, INTERACTIVE], 10, 0.001)
        made.let(4)
        assert made.begun.count(BULK) == 4


@pytest.mark.parametrize(("threads", "while_long"), [(1, 0), (2, 1)])
def test_one_more_piece_waits_here_while_others_run_unless_all_are_long_at_it(
    threads: int, while_long: int
) -> None:
    lanes = Lanes(threads, {INTERACTIVE: 4, BULK: 1})
    seen = [lanes.ahead]
    lanes.run(INTERACTIVE, lambda: seen.append(lanes.ahead))
    lanes.run(BULK, lambda: seen.append(lanes.ahead), long=True)
    lanes.run(INTERACTIVE, lambda: seen.append(lanes.ahead))
    lanes.close()
    seen.append(lanes.ahead)
    assert seen == [0, 1, while_long, 1, 0]


def failing(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt("x"), SystemExit(3)])
def test_what_work_raises_comes_out_and_the_thread_lives_on(error: BaseException) -> None:
    lanes = Lanes(1, {INTERACTIVE: 1, BULK: 1})
    for _ in range(3):
        with pytest.raises(type(error)) as caught:
            lanes.run(INTERACTIVE, failing(error))
        assert caught.value is error
    assert lanes.run(BULK, lambda: 7) == 7
    lanes.close()
