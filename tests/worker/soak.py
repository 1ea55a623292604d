"""`python -m tests.worker.soak [KILLS] [URL]`: workers are killed and stopped at random, again and again; no job may differ.

Not part of the suite: fifty disturbances take some minutes. URL is that of an empty PostgreSQL database; without it SQLite.
"""

import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from service.records.jobs import FINAL
from tests.worker.material import make
from tests.worker.rig import Worker, rig
from tests.worker.test_disturbed import WORK, ask, held_to, rows

WORKERS = 2
SEED = random.randrange(1 << 30)


def soak(kills: int, url: str | None) -> None:
    """Raises: AssertionError when a job ended otherwise than in peace."""
    random.seed(SEED)
    print(f"{kills} disturbances, seed {SEED}")
    with tempfile.TemporaryDirectory(prefix="ninfer-gate-soak-") as base:
        material = make(Path(base))
        with rig(Path(base) / "peace", shard_bytes=400_000) as made:
            made.started()
            peace = {}
            for what in WORK:
                job_id = ask(made, material, what)
                made.finished(job_id)
                peace[what] = rows(made, job_id)
        done: Counter[str] = Counter()
        jobs: list[tuple[str, str]] = []
        with rig(Path(base) / "data", url, shard_bytes=400_000) as made:
            begin = time.monotonic()
            while sum(done.values()) < kills:
                alive = [worker for worker in made.workers if worker.process.poll() is None]
                for _ in range(WORKERS - len(alive)):
                    alive.append(made.start())
                running = [job_id for _, job_id in jobs if made.row(job_id).state not in FINAL]
                if len(running) < 2:
                    what = random.choice(WORK)
                    jobs.append((what, ask(made, material, what)))
                time.sleep(random.uniform(0.2, 5.0))
                done[_disturb(random.choice(alive)).name] += 1
            made.started()  # those alive may be stopped, or about to find that they were taken for dead
            for what, job_id in jobs:
                held_to(made, material, what, job_id, peace[what])
            seconds = time.monotonic() - begin
            print(f"{dict(done)}: {len(jobs)} jobs in {seconds:.0f} s, each as in peace")


def _disturb(worker: Worker) -> signal.Signals:
    number = random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM))
    worker.send(number)
    return number


if __name__ == "__main__":
    soak(int(sys.argv[1]) if len(sys.argv) > 1 else 50, sys.argv[2] if len(sys.argv) > 2 else None)
