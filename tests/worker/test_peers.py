"""Which workers are taken for dead, judged on a made-up clock and made-up processes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace

import pytest

from tests.worker.rig import until
from worker import processes
from worker.peers import Beat, Dead, Peers
from worker.processes import Process, Status

HERE = "here"


@dataclass
class World:
    """One machine seen by the worker `me`; a step is a second in which everybody beats who can."""

    time: float = 0.0
    processes: dict[int, Status] = field(default_factory=dict)
    rows: dict[str, Beat] = field(default_factory=dict)
    peers: Peers = field(init=False)

    def __post_init__(self) -> None:
        self.peers = Peers("me", HERE, 15.0, 1.0, lambda: self.time, self.processes.get)
        self.add("me", 1)

    def add(self, name: str, pid: int, machine: str = HERE) -> None:
        """A worker that lives."""
        self.processes[pid] = Status("S", 100 + pid)
        self.rows[name] = Beat(name, Process(machine, pid, 100 + pid), self.time)

    def judge(
        self, *silent: str, seconds: float = 1.0, beating: bool = True, readable: bool = True
    ) -> list[Dead]:
        """What is judged after a step in which `silent` did not beat."""
        self.time += seconds
        for name, row in self.rows.items():
            if name not in silent:
                self.rows[name] = replace(row, beat_at=self.time)
        return self.peers.judge(list(self.rows.values()) if readable else None, beating)


@pytest.fixture
def world() -> World:
    """With one peer here and one elsewhere."""
    made = World()
    made.add("near", 2)
    made.add("far", 2, "elsewhere")  # the same number, on another machine
    assert made.judge() == []
    return made


def test_who_beats_lives(world: World) -> None:
    assert all(world.judge() == [] for _ in range(100))


def test_a_process_that_is_gone_is_dead_at_once(world: World) -> None:
    del world.processes[2]
    [dead] = world.judge("near")
    assert (dead.executor_id, dead.kill) == ("near", False)


@pytest.mark.parametrize("status", [Status("S", 999), Status("Z", 102), Status("X", 102)])
def test_so_is_one_whose_number_belongs_to_another_and_one_that_nobody_collected(
    world: World, status: Status
) -> None:
    world.processes[2] = status
    [dead] = world.judge("near")
    assert (dead.executor_id, dead.kill) == ("near", False)


def test_silence_is_waited_for_and_ends_in_a_kill_here_only(world: World) -> None:
    for _ in range(14):
        assert world.judge("near", "far") == []
    assert [(dead.executor_id, dead.kill) for dead in world.judge("near", "far")] == [
        ("near", True),
        ("far", False),
    ]


def test_a_stopped_process_is_dead_though_the_database_cannot_be_read(world: World) -> None:
    world.processes[2] = Status("T", 102)
    for _ in range(15):
        assert world.judge("me", "near", "far", beating=False, readable=False) == []
    [dead] = world.judge("me", "near", "far", beating=False, readable=False)
    assert (dead.executor_id, dead.kill) == ("near", True)


def test_one_that_was_stopped_for_a_while_lives(world: World) -> None:
    for _ in range(5):
        world.processes[2] = Status("T", 102)
        assert all(world.judge("near") == [] for _ in range(10))
        world.processes[2] = Status("S", 102)
        assert world.judge() == []


def test_while_our_own_beats_fail_nobody_is_silent(world: World) -> None:
    assert all(world.judge("me", "near", "far", beating=False) == [] for _ in range(60))
    assert all(world.judge("near", "far") == [] for _ in range(14)), "all must get the time to beat again"
    assert len(world.judge("near", "far")) == 2


def test_while_we_slept_ourselves_nobody_was_silent(world: World) -> None:
    assert world.judge("near", "far", seconds=3600) == []
    assert world.judge() == []


def test_clocks_that_jump_kill_nobody(world: World) -> None:
    for jump in (-86_400.0, 86_400.0, 0.0):
        world.rows["far"] = replace(world.rows["far"], beat_at=world.time + jump)
        assert world.judge("far") == []


def test_who_is_forgotten_is_not_judged(world: World) -> None:
    del world.rows["near"], world.processes[2]
    assert world.judge() == []


def sleeper() -> subprocess.Popen[bytes]:
    """A process that does nothing."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_real_processes_are_seen_as_they_are() -> None:
    process = sleeper()
    try:
        status = processes.look(process.pid)
        assert status is not None
        assert not status.ended
        assert not status.stopped
        os.kill(process.pid, signal.SIGSTOP)
        until("it is stopped", lambda: (seen := processes.look(process.pid)) is not None and seen.stopped)
        assert processes.kill(Process(processes.machine(), process.pid, status.started))
        until("it has ended", lambda: (seen := processes.look(process.pid)) is not None and seen.ended)
        assert process.wait(5) == -signal.SIGKILL
        assert processes.look(process.pid) is None
        assert processes.kill(Process(processes.machine(), process.pid, status.started)), "gone is gone"
    finally:
        process.kill()
        process.wait()


def test_another_process_with_the_same_number_is_left_alone() -> None:
    process = sleeper()
    try:
        status = processes.look(process.pid)
        assert status is not None
        assert processes.kill(Process(processes.machine(), process.pid, status.started - 1))
        time.sleep(0.1)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_this_process() -> None:
    me = processes.this_process()
    status = processes.look(os.getpid())
    assert status is not None
    assert (me.pid, me.started, me.machine) == (os.getpid(), status.started, processes.machine())
    assert len(me.machine.split("/")) == 2
