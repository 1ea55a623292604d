"""Kernels of a CUDA device against copying its own memory: everything lies on the device already, one launch a time.

`python -m benchmarks.gpu [--json FILE]`. Ratios are of bytes read and written in a second, medians taken turn by turn.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Row, Table, paired
from ninfer_core.formats import GROUPED
from ninfer_core.kernels.devices import devices
from ninfer_core.kernels.values import GroupedPlanes

ROWS, COLUMNS = 65_536, 4_096  # 2**28 weights: far more than a cache holds
REPEATS = 30


class Bench:
    """Rows of one table."""

    def __init__(self, processor: Any, table: Table, rows: int) -> None:
        self.memory, self.table, self.rows = processor.memory, table, rows
        self.weights = rows * COLUMNS

    def row(self, work: str, moved: int, launch: Callable[[], None]) -> None:
        """Measure one kernel; `moved` are the bytes that it reads and writes."""
        half = moved // 2
        source, target = (
            self.memory.empty("copied", half, np.uint8),
            self.memory.empty("copy", half, np.uint8),
        )

        def copy(_: int) -> None:
            self.memory.copy(source, target)
            self.memory.wait()

        def run(_: int) -> None:
            launch()
            self.memory.wait()

        copied, ran = paired(copy, run, 1, REPEATS)
        note = f"{self.weights / ran / 1e9:.0f} Gw/s"
        self.table.add(Row(work, f"{moved / ran / 1e9:.0f} GB/s", copied / ran, note=note))

    def grouped(self) -> None:
        """Encode, check and reconstruct every grouped format."""
        from ninfer_core.kernels import gpu_encode, gpu_reconstruct, gpu_scan

        memory = self.memory
        line = np.random.default_rng(1).standard_normal(COLUMNS).astype(np.float32).view(np.uint32)
        for fmt in GROUPED:
            sizes = GroupedPlanes.empty(fmt, 1, COLUMNS)
            base = memory.empty("base", sizes.base.size * self.rows, np.uint8)
            high = memory.empty("high", sizes.high.size * self.rows, np.uint8)
            scales = memory.empty("scales", sizes.scales.size * self.rows, np.uint16)
            planes = (base.view(np.uint32), high, scales)
            stored = sum(plane.nbytes for plane in (sizes.base, sizes.high, sizes.scales)) * self.rows
            for dtype, words in (("BF16", (line >> 16).astype(np.uint16)), ("F32", line)):
                source = memory.upload("source", np.tile(words, self.rows))
                counts = memory.upload("counts", np.array([0, 0, gpu_encode.NONE], np.uint64))
                given = (memory, fmt, self.rows, COLUMNS, source, dtype, planes, counts)
                moved = self.weights * words.itemsize + stored
                self.row(
                    f"encode {fmt.name} from {dtype}", moved, lambda given=given: gpu_encode.encode_on(*given)
                )
            found = memory.upload("found", np.zeros(1, np.uint32))
            checked = (memory, fmt, self.rows, COLUMNS, planes, found)
            self.row(f"check {fmt.name}", stored, lambda given=checked: gpu_scan.grouped_on(*given))
            for name, word in (("FP32", np.uint32), ("BF16", np.uint16)):
                out = memory.empty("out", self.weights, word)
                made = (memory, fmt, self.rows, COLUMNS, planes, out)
                moved = stored + self.weights * np.dtype(word).itemsize
                self.row(
                    f"reconstruct {fmt.name} to {name}",
                    moved,
                    lambda given=made: gpu_reconstruct.grouped_on(*given),
                )


def main() -> None:
    """Measure, or say why nothing can be measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/gpu.json"))
    chosen = parser.parse_args()
    here = devices()
    if len(here) == 1:
        print(f"NOT MEASURED: there is no CUDA device here, only {here[0].model}.")
        return
    from ninfer_core.kernels.gpu import Gpu

    board, rows = here[1], 2 if here[1].simulated else ROWS
    processor = Gpu(board)
    table = Table(f"Kernels of {board.model}, capability {board.capability}, driver {board.driver}")
    with processor.memory.session():
        Bench(processor, table, rows).grouped()
    if not board.simulated:
        chosen.json.parent.mkdir(exist_ok=True)
        table.write(chosen.json)


if __name__ == "__main__":
    main()
