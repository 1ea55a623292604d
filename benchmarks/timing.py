"""Timing helpers: medians over rotated buffers, ratios within one run, and an aligned table."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path


def median_seconds(work: Callable[[int], object], buffers: int, repeats: int) -> float:
    """Median seconds of `work(i)`, i going round the buffers; every buffer is touched once before."""
    for i in range(buffers):
        work(i)
    times = []
    for i in range(repeats):
        start = time.perf_counter()
        work(i % buffers)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def paired(
    reference: Callable[[int], object], work: Callable[[int], object], buffers: int, repeats: int
) -> tuple[float, float]:
    """Median seconds of both, taken turn by turn, so that a slow spell of the machine meets both."""
    first, second = turn_by_turn((reference, work), repeats, buffers)
    return first, second


def turn_by_turn(
    works: Sequence[Callable[[int], object]], repeats: int, buffers: int = 1
) -> tuple[float, ...]:
    """`paired` for any number of works."""
    for i in range(buffers):
        for work in works:
            work(i)
    times: list[list[float]] = [[] for _ in works]
    for i in range(repeats):
        for work, into in zip(works, times, strict=True):
            start = time.perf_counter()
            work(i % buffers)
            into.append(time.perf_counter() - start)
    return tuple(map(statistics.median, times))


def on_threads(work: Callable[[int], object], threads: int) -> Callable[[int], object]:
    """`work` on so many buffers at a time, one per thread; the time is that of all together."""
    pool = ThreadPoolExecutor(threads)

    def together(i: int) -> object:
        return list(pool.map(work, range(i, i + threads)))

    return together


@dataclass(frozen=True)
class Row:
    """One measured ratio. `better` says whether a good ratio is high or low."""

    work: str
    speed: str
    ratio: float | None
    target: float | None = None
    better: str = ">="
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target is met, or by which factor it is not."""
        if self.ratio is None or self.target is None:
            return ""
        ahead = self.ratio / self.target if self.better == ">=" else self.target / self.ratio
        return "met" if ahead >= 1 else f"{1 / ahead:.2f}x short"


@dataclass
class Table:
    """Rows in the order they were measured, printed as they come."""

    title: str
    rows: list[Row] = field(default_factory=list)
    load: float | None = field(
        default_factory=lambda: os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    )

    def add(self, row: Row) -> None:
        """Keep a row and print it."""
        if not self.rows:
            print(f"{self.title}\n{platform.machine()}, ratios within this run\n", flush=True)
            print(f"{'work':<58}{'speed':>13}{'ratio':>9}{'target':>10}  verdict")
        self.rows.append(row)
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        target = "" if row.target is None else f"{row.better} {row.target:.2f}"
        print(f"{row.work:<58}{row.speed:>13}{ratio:>9}{target:>10}  {row.verdict or row.note}", flush=True)

    def write(self, path: Path) -> None:
        """The same as JSON."""
        rows = [asdict(row) | {"verdict": row.verdict} for row in self.rows]
        machine = {"architecture": platform.machine(), "processors": os.cpu_count(), "load": self.load}
        content = {"title": self.title, "machine": machine, "rows": rows}
        path.write_text(json.dumps(content, indent=1) + "\n")
