"""How long it takes to judge whole artifacts by their directories: structure and inventory, no compiler, no payload.

`python -m benchmarks.targets [--runs N] [--folder DIR]`. The artifacts are sparse files with the canonical directory of
each registered target. Exits 1 when a process takes longer than the limit at the median, or more memory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ninfer_core.targets import TARGETS
from tests.targets import sparse

CLI = (sys.executable, "-m", "service.cli")
LIMIT_SECONDS = 2.0
LIMIT_MB = 200


def measure(path: Path) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak megabytes of one whole process that has to pass."""
    asked = ("--target", "auto", "--canonical", "--checks", "structure,inventory")
    start = time.perf_counter()
    process = subprocess.Popen([*CLI, "verify", str(path), *asked], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, path
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main() -> int:
    """Measure every registered target; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    within = True
    print(f"{'target':<32}{'objects':>9}{'bytes':>18}{'median s':>10}{'worst s':>9}{'cpu s':>7}{'MB':>7}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for target in TARGETS:
            path = sparse.directory(target, target.revisions[-1]).write(Path(folder) / "a.ninfer")
            measure(path)  # once for the caches of the system
            seconds, busy, megabytes = zip(*(measure(path) for _ in range(options.runs)), strict=True)
            median, worst, peak = statistics.median(seconds), max(seconds), max(megabytes)
            within &= median < LIMIT_SECONDS and peak < LIMIT_MB
            size = path.stat().st_size
            print(
                f"{target.identity:<32}{len(target.objects):>9,}{size:>18,}{median:>10.2f}{worst:>9.2f}{statistics.median(busy):>7.2f}{peak:>7.0f}"
            )
    print(f"limit: {LIMIT_SECONDS} s at the median and {LIMIT_MB} MB, the whole process counted")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
