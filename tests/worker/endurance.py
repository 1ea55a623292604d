"""`python -m tests.worker.endurance`: twenty mixed jobs over three workers that are killed, stopped and put to sleep at random.

In the middle the database is restarted, once in order and once as after a crash (PostgreSQL), and the durable engine's
tables are lost with every worker (both). Every job has to end with the rows and digests of a run in peace. Not part of
the suite: a run takes a minute or two. The table is on standard output, the exit code 1 where anything differs.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from service.queue import prepare
from service.records import models
from service.records.jobs import FINAL
from service.scheme_checks import CheckScheme, Stored
from service.selfchecks import Check
from tests.databases import KINDS, PostgresServer
from tests.memory import folder as memory
from tests.worker.material import Material, make
from tests.worker.rig import Rig, Worker, rig
from tests.worker.test_disturbed import ask, rows
from tests.worker.test_schemes import CASE, EXPECTED, NAMES, PARAMS, npy
from worker.processes import look

WORKERS: Final = 3
MIX: Final = {"verify": 6, "convert": 5, "compare": 4, "selfcheck": 2, "scheme": 3}
_SHARD_BYTES: Final = 200_000
_ATTEMPTS: Final = (
    100  # far above what chance does to one piece of work at this rate of kills; poison has tests of its own
)
_SECONDS: Final = 600.0
_PAUSE: Final = (0.1, 1.4)
_SUPERVISED_SECONDS: Final = 6.0  # three times what its peers wait


@dataclass
class Outcome:
    """Of one run."""

    database: str
    seed: int
    jobs: int
    seconds: float = 0.0
    done: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    anew: int = 0  # times that jobs were begun anew
    begun: int = 0  # times that shards were begun, of those that a job is cut into
    shards: int = 0
    tensors: int = 0

    def line(self) -> str:
        """A row of the table."""
        done = self.done
        verdict = "as in peace" if not self.faults else f"{len(self.faults)} FAULTS"
        return (
            f"{self.database:<11} {self.seed:>10} {self.jobs:>5} {done['kill']:>6} {done['stop']:>6} {done['nap']:>6} "
            f"{done['restart']:>8} {done['crash']:>6} {done['engine lost']:>7} {self.shards:>7} {self.anew:>5} "
            f"{self.tensors:>8} {self.seconds:>8.1f}  {verdict}"
        )


_HEAD: Final = (
    f"{'database':<11} {'seed':>10} {'jobs':>5} {'kill-9':>6} {'STOP':>6} {'naps':>6} {'restarts':>8} {'crashes':>6} "
    f"{'engine':>7} {'shards':>7} {'anew':>5} {'tensors':>8} {'seconds':>8}"
)


def start_job(made: Rig, material: Material, what: str) -> str:
    """A new job of this type; its id."""
    if what == "selfcheck":
        return made.job(Check("cpu", "quick", 7))
    if what == "scheme":
        parts = {}
        for name in NAMES:
            path = made.settings.data / f"{name}.npy"
            path.write_bytes(npy(CASE.arrays[name]))
            parts[name] = Stored(made.store(path).digest)
        return made.job(CheckScheme("gptq", parts, shape=EXPECTED.shape, params=PARAMS))
    return ask(made, material, what)


def left_behind(made: Rig, job_id: str, what: str) -> dict[str, Any]:
    """What a job leaves behind, without what chance and the clock draw."""
    if what in ("verify", "convert", "compare"):
        found = rows(made, job_id)
        del found["jobs"][0]["epoch"]
        return found
    with made.parts.database.read() as session:
        if what == "scheme":
            check = session.scalars(
                select(models.SchemeCheck).where(models.SchemeCheck.job_id == job_id)
            ).one()
            return {"verdict": check.verdict, "document": check.document}
        told = session.scalars(select(models.SelfCheck).where(models.SelfCheck.job_id == job_id)).one()
        results = session.scalars(
            select(models.SelfCheckResult).where(models.SelfCheckResult.self_check_id == told.id)
        )
        outcomes = sorted(f"{row.kernel} {row.outcome}" for row in results)
        return {"outcome": told.outcome, "kernels": outcomes}


def plan(dice: random.Random) -> list[str]:
    """The types of the jobs, in an order drawn by chance."""
    mixed = [what for what, count in MIX.items() for _ in range(count)]
    dice.shuffle(mixed)
    return mixed


class Disturber:
    """What happens to the workers of a run, drawn by `dice`; never more than `most` disturbances."""

    def __init__(
        self, made: Rig, dice: random.Random, server: PostgresServer | None, outcome: Outcome, most: int
    ) -> None:
        self._made, self._dice, self._server, self._outcome, self._most = made, dice, server, outcome, most
        self._count = 0

    def once(self) -> None:
        """One disturbance, and what is due in the middle."""
        time.sleep(self._dice.uniform(*_PAUSE))
        awake = self._awake()
        if self._count >= self._most:
            return
        self._count += 1
        worker = self._dice.choice(awake)
        what = self._dice.choices(("kill", "stop", "nap"), (6, 3, 2))[0]
        if len(awake) == 1:
            what = "kill"  # somebody has to be there to find the others
        self._outcome.done[what] += 1
        worker.send(signal.SIGKILL if what == "kill" else signal.SIGSTOP)
        if what == "nap":
            threading.Timer(self._dice.uniform(0.2, 1.5), worker.send, [signal.SIGCONT]).start()
        if self._server is not None and self._count == self._most // 4:
            self._restart("restart", signal.SIGINT)
        elif self._server is not None and self._count == self._most // 2:
            self._restart("crash", signal.SIGQUIT)
        elif self._count == 3 * self._most // 4:
            self._lose_engine()

    def _awake(self) -> list[Worker]:
        """The workers that are not stopped; those that ended are started again."""
        alive = [worker for worker in self._made.workers if worker.process.poll() is None]
        alive += [self._made.start() for _ in range(WORKERS - len(alive))]
        return [worker for worker in alive if not _stopped(worker)] or [self._made.start()]

    @contextmanager
    def supervising(self) -> Iterator[None]:
        """Kill who is stopped for long, as `serve` does it with its worker: all others may be dead, and the database shut."""
        ended = threading.Event()

        def run() -> None:
            since: dict[int, float] = {}
            while not ended.wait(0.5):
                for worker in list(self._made.workers):
                    if not _stopped(worker):
                        since.pop(worker.pid, None)
                    elif (
                        time.monotonic() - since.setdefault(worker.pid, time.monotonic())
                        > _SUPERVISED_SECONDS
                    ):
                        self._outcome.done["supervised"] += 1
                        worker.send(signal.SIGKILL)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _restart(self, what: str, number: signal.Signals) -> None:
        if self._server is None:
            return
        self._server.restart(number, pause=self._dice.uniform(0.1, 2.0))
        self._outcome.done[what] += 1

    def _lose_engine(self) -> None:
        """Every worker is killed, and the engine's tables are gone, as after a backup of the records alone."""
        for worker in self._made.workers:
            worker.kill()
        url = self._made.settings.engine_url
        if self._server is None:
            for path in self._made.settings.data.glob("engine.sqlite*"):
                path.unlink()
        else:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA dbos CASCADE")
        prepare(url)
        self._outcome.done["engine lost"] += 1


def run(kind: str, seed: int, most: int, material: Material, peace: dict[str, Any], base: Path) -> Outcome:
    """One run."""
    dice = random.Random(seed)
    mixed = plan(dice)
    outcome = Outcome(kind, seed, len(mixed))
    with _database(kind) as (server, url), rig(base, url, **_settings()) as made:
        begin = time.monotonic()
        disturber = Disturber(made, dice, server, outcome, most)
        jobs: dict[str, str] = {}
        for what in mixed[:8]:
            jobs[start_job(made, material, what)] = what
        rest = mixed[8:]
        with disturber.supervising():
            while (rest or not _over(made, jobs)) and time.monotonic() - begin < _SECONDS:
                disturber.once()
                if rest:
                    what = rest.pop()
                    jobs[_insistent(lambda: start_job(made, material, what))] = what  # noqa: B023  called at once
        for job_id, what in jobs.items():
            outcome.faults += [
                f"{what} {job_id}: {fault}" for fault in _faults(made, job_id, what, peace[what])
            ]
        _count(made, outcome)
        outcome.seconds = time.monotonic() - begin
    return outcome


def in_peace(material: Material, base: Path) -> dict[str, Any]:
    """What one worker makes of each kind of job when nobody disturbs it."""
    with rig(base, None, **_settings()) as made:
        made.started()
        ids = {what: start_job(made, material, what) for what in MIX}
        for what, job_id in ids.items():
            job = made.finished(job_id)
            if job.state != "passed":
                raise SystemExit(f"a {what} in peace ended as {job.state}: {job.error}")
        return {what: left_behind(made, job_id, what) for what, job_id in ids.items()}


def _settings() -> dict[str, Any]:
    return {"shard_bytes": _SHARD_BYTES, "max_attempts": _ATTEMPTS}


def _stopped(worker: Worker) -> bool:
    status = look(worker.pid)
    return status is not None and status.stopped


@contextmanager
def _database(kind: str) -> Iterator[tuple[PostgresServer | None, str | None]]:
    if kind == "sqlite":
        yield None, None
        return
    # What was committed has to outlive a crash of the server; that of the machine is not tried.
    server = PostgresServer(synchronous_commit="on")
    try:
        yield server, server.url(server.migrated())
    finally:
        server.stop()


def _insistent(work: Callable[[], str]) -> str:
    """As a client does that is told to come again."""
    while True:
        try:
            return work()
        except SQLAlchemyError:
            time.sleep(0.2)


def _over(made: Rig, jobs: dict[str, str]) -> bool:
    try:
        with made.parts.database.read() as session:
            count = select(func.count()).where(models.Job.id.in_(jobs), models.Job.state.in_(FINAL))
            return session.scalar(count) == len(jobs)
    except SQLAlchemyError:
        return False


def _faults(made: Rig, job_id: str, what: str, expected: dict[str, Any]) -> Iterator[str]:
    job = made.row(job_id)
    if job.state != "passed":
        yield f"ended as {job.state}: {job.error}"
        return
    found = left_behind(made, job_id, what)
    for name in expected.keys() | found.keys():
        if found.get(name) != expected.get(name):
            yield f"{name} differ: {json.dumps(found.get(name))[:300]} and {json.dumps(expected.get(name))[:300]}"
    events = made.events(job_id)
    if [number for number, _, _ in events] != list(range(1, len(events) + 1)):
        yield "its events have gaps"
    if [key for _, _, key in events].count("state:final") != 1 or events[-1][2] != "state:final":
        yield "its end is not its last event"


def _count(made: Rig, outcome: Outcome) -> None:
    with made.parts.database.read() as session:
        outcome.anew = int(session.scalar(select(func.sum(models.Job.epoch))) or 0)
        outcome.shards = int(session.scalar(select(func.count()).select_from(models.Shard)) or 0)
        outcome.tensors = int(session.scalar(select(func.count()).select_from(models.Result)) or 0)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.worker.endurance", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, nargs="*", help="one run for each; one drawn by chance by default"
    )
    parser.add_argument("--kills", type=int, default=60, help="disturbances of a run at most")
    parser.add_argument("--databases", nargs="*", choices=KINDS, default=list(KINDS))
    given = parser.parse_args()
    seeds = given.seeds or [random.SystemRandom().randrange(1 << 30)]
    failed = False
    with tempfile.TemporaryDirectory(prefix="ninfer-gate-endurance-", dir=memory()) as base:
        material = make(Path(base))
        peace = in_peace(material, Path(base) / "peace")
        print(_HEAD, flush=True)
        for seed in seeds:
            for kind in given.databases:
                outcome = run(kind, seed, given.kills, material, peace, Path(base) / f"{kind}-{seed}")
                print(outcome.line(), flush=True)
                for fault in outcome.faults:
                    print(f"    {fault}")
                failed = failed or bool(outcome.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
