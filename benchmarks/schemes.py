"""Compiled decoders of the catalogue beside the packages that decode the same stored arrays on a CPU, in one run.

`python -m benchmarks.schemes [--quick] [--json FILE] [--only TEXT]`. Ours is the way that the command takes, checks of
parts and shape included. A peer that makes other words than ours is an error, not a row. Both are timed turn by turn, the
first one by turns too; a ratio is that of their medians, and the note has those of their fastest turns and of the processor
time, which neighbours on the machine move least. Each number of threads is a process of its own, held to so many
processors before anything is loaded.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.scheme_works import BUFFERS, Maker, Work
from benchmarks.timing import Row, Table
from ninfer_core.schemes import run
from ninfer_core.schemes.catalogue.forms import FORMS

SHAPES: Final = ((4096, 4096), (11008, 4096))
_FEW: Final = 5  # turns beside a peer that is _SLOW times slower
_SLOW: Final = 3


def words(values: Any) -> Any:
    """Binary32 words of an array or a tensor, flat."""
    array = np.ascontiguousarray(values, np.float32)
    return array.view(np.uint32).reshape(-1)


@dataclass
class Times:
    """Seconds of each turn of one work: on the clock, and of the processors."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def timed(works: tuple[Callable[[int], object], ...], turns: int) -> list[Times]:
    """Times of each work, the last of which is ours; who begins changes with every turn.

    Beside one that takes several times as long, fewer turns tell as much.
    """
    times = [Times() for _ in works]
    for turn in range(-1, turns):
        if turn >= _FEW and min(min(one.clock) for one in times[:-1]) > _SLOW * min(times[-1].clock):
            break
        order = range(len(works)) if turn % 2 else reversed(range(len(works)))
        for k in order:
            start, used = time.perf_counter(), time.process_time()
            made = works[k](turn % BUFFERS)
            taken = time.perf_counter() - start, time.process_time() - used
            del made
            if turn >= 0:  # the first one warms up
                times[k].clock.append(taken[0])
                times[k].processor.append(taken[1])
    return times


def rows(work: Work, threads: int, turns: int) -> Iterator[Row]:
    """A row for each peer. Raises: SystemExit, where one decodes to other words than ours."""
    form = FORMS[work.form]

    def ours(i: int) -> Any:
        return run.decode(form, work.parts[i], work.shape, work.params)

    for name, other in work.others.items():
        if other is None:
            continue
        proof = work.proofs.get(name) or other
        own = ours(0)
        if name in work.proofs:
            own = own + np.float32(0)
        if not np.array_equal(words(own), words(proof(work.parts[0]))):
            sys.exit(f"{work.form}: {name} decodes to other words than ours, so there is nothing to compare")
        del own

        def theirs(i: int, other: Callable[..., Any] = other) -> Any:
            return other(work.parts[i])

        base, measured = timed((theirs, ours), turns)
        median = statistics.median
        ratio = median(base.clock) / median(measured.clock)
        speed = f"{work.shape[0] * work.shape[1] / median(measured.clock) / 1e9:.2f} Gw/s"
        label = " ".join(filter(None, (work.form, work.note)))
        shape = "x".join(map(str, work.shape))
        used = median(base.processor) / median(measured.processor)
        note = f"fastest turns {min(base.clock) / min(measured.clock):.2f}, processor time {used:.2f}"
        yield Row(
            f"{label} {shape}, {threads} thread{'s'[: threads - 1]} / {name}", speed, ratio, 1.0, note=note
        )


def measure(threads: int, turns: int, only: str, shapes: int) -> None:
    """The rows of this process, one JSON line each."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for outputs, inputs in SHAPES[:shapes]:
        for work in Maker(outputs, inputs, threads).works(only):
            for row in rows(work, threads, turns):
                print(json.dumps(asdict(row)), flush=True)
            gc.collect()


def started(threads: int, arguments: list[str]) -> Iterator[Row]:
    """The rows of a process with so many threads. Raises: SystemExit, where it fails."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.schemes",
        "--threads",
        str(threads),
        *arguments,
    ]
    environment = os.environ | {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        for line in child.stdout or ():
            if line.startswith("{"):
                yield Row(**json.loads(line))
    if child.returncode:
        sys.exit(child.returncode)


def main() -> None:
    """Measure, print, and store what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one shape and few turns: a look, not a measurement"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="forms whose names hold TEXT")
    parser.add_argument("--threads", type=int, metavar="N", help="measure in this process, with so many")
    options = parser.parse_args()
    if options.threads:
        measure(options.threads, *((5, options.only, 1) if options.quick else (9, options.only, 2)))
        return
    arguments = ["--only", options.only, *(["--quick"] if options.quick else [])]
    table = Table("schemes")
    for threads in (1, 2):
        for row in started(threads, arguments):
            table.add(row)
    if not table.rows:
        sys.exit("nothing was measured: no such form, or none of the packages is there (make bench-schemes)")
    if options.json:
        table.write(options.json)


if __name__ == "__main__":
    main()
