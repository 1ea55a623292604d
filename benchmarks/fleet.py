"""Two workers of one thread over one: the same verification of 4 GB, in turns, on one database and one folder.

Once with an artifact of many tensors of several formats in a few files (revision 3), and once with one of a single tensor in
one file (revision 2), whose digest is one chain that nobody can part, and more than half of all there is to do. The limit is on
both.

`python -m benchmarks.fleet [--gigabytes N] [--pairs N] [--only sqlite|postgresql] [--json FILE] [--folder DIR]`. The service
has no worker of its own; `ninfer-gate worker` runs once or twice beside it, the second one for every other job. A job's
time is from its creation to its end. Everything is zero and lies in the page cache, so that two processors have something
to do. Exits 1 when the median of the pairs' ratios is above the limit.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from benchmarks.load import database, room
from benchmarks.memory import sparse_artifact
from benchmarks.service import serving
from benchmarks.timing import Row, Table
from ninfer_core.formats import FORMATS
from ninfer_core.layouts import canonical_layout
from service.client import Client

LIMIT = 0.6
# What it is called, the formats of its tensors, and how many files it takes.
CASES = (
    ("32 tensors in 4 files", ("Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S") * 8, 4),
    ("1 tensor in 1 file", ("Q4G64_F16S",), 1),
)
COLUMNS = 16384
HEADERS_BYTES = 1 << 20  # at most, of a file
READY = "worker.ready"


@contextmanager
def worker(data: Path, url: str | None, log: Path) -> Iterator[None]:
    """One more worker of one thread, ready; ended in order."""
    command = [Path(sys.executable).with_name("ninfer-gate"), "worker", "--data", data, "--threads", "1"]
    environment = {**os.environ, **({} if url is None else {"NINFER_GATE_DATABASE_URL": url})}
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stderr=stderr, stdout=subprocess.DEVNULL, env=environment)
    try:
        end = time.monotonic() + 120
        while READY not in log.read_text():
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"a worker did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def seconds(client: Client, digest: str) -> float:
    """One verification of everything, from its creation to its end."""
    job = client.wait(client.start({"type": "verify", "artifact": digest, "full": True})["id"])
    if job["state"] != "passed":
        sys.exit(f"the job ended as {job['state']}: {job['error']}")
    begin, end = (datetime.fromisoformat(job[name]) for name in ("created_at", "finished_at"))
    return (end - begin).total_seconds()


def artifact(folder: Path, size: int, formats: Sequence[str], files: int) -> list[Path]:
    """One of about `size` bytes in so many files: a tensor for each format, all of as many rows."""
    kinds = [FORMATS[name] for name in formats]
    row = sum(canonical_layout(kind).encoded_size(kind, (1024, COLUMNS)) for kind in kinds)
    shapes = [(name, (size * 1024 // row, COLUMNS)) for name in formats]
    paths = sparse_artifact(
        folder / "a.ninfer", shapes, None if files == 1 else size // files + HEADERS_BYTES
    )
    if len(paths) != files:
        sys.exit(f"the artifact took {len(paths)} files instead of {files}")
    return paths


def measure(kind: str, folder: Path, numbers: argparse.Namespace, table: Table) -> bool:
    """One database."""
    folder.mkdir()
    data = folder / "data"
    with (
        database(kind, folder) as url,
        serving(data, url, worker=False) as service,
        Client(service.address, service.token, 600.0) as client,
    ):
        sizes, digests = {}, {}
        for case, formats, files in CASES:
            paths = artifact(folder, int(numbers.gigabytes * 1e9), formats, files)
            sizes[case] = sum(path.stat().st_size for path in paths)
            digests[case] = client.push_artifact(paths)["digest"]
            for path in paths:
                path.unlink()
        alone: dict[str, list[float]] = {case: [] for case in digests}
        both: dict[str, list[float]] = {case: [] for case in digests}
        with worker(data, url, folder / "first.log"):
            for digest in digests.values():
                seconds(client, digest)  # what is compiled and read for the first time
            for number in range(numbers.pairs):
                for case, digest in digests.items():
                    alone[case].append(seconds(client, digest))
                with worker(data, url, folder / f"second-{number}.log"):
                    for case, digest in digests.items():
                        both[case].append(seconds(client, digest))
    rows = [
        _row(f"{kind}: verify {sizes[case] / 1e9:.1f} GB, {case}", sizes[case], alone[case], both[case])
        for case in digests
    ]
    for row in rows:
        table.add(row)
        print(f"    {row.note}", flush=True)
    return all(row.verdict == "met" for row in rows)


def _row(what: str, size: int, alone: list[float], both: list[float]) -> Row:
    ratios = [two / one for one, two in zip(alone, both, strict=True)]
    spread = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    note = f"{statistics.median(alone):.2f} s by one, {statistics.median(both):.2f} s by two; pairs: {spread}"
    return Row(
        f"{what}, two over one",
        f"{size / statistics.median(both) / 1e9:.2f} GB/s",
        statistics.median(ratios),
        LIMIT,
        "<=",
        note,
    )


def main() -> None:
    """Measure; exit 1 when the limit is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=4, help="size of the artifact")
    parser.add_argument("--pairs", type=int, default=5, help="times that each is measured")
    parser.add_argument("--only", choices=("sqlite", "postgresql"), help="leave the other out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the temporary folder)")
    numbers = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then too
    table = Table("a fleet of two")
    fine = True
    for kind in ("sqlite", "postgresql"):
        if numbers.only in (None, kind):
            with room(numbers.folder) as folder:
                fine &= measure(kind, folder / kind, numbers, table)
    if numbers.json:
        table.write(numbers.json)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
