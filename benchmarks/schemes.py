"""Compiled decoders of the catalogue beside the packages that decode the same stored arrays on a CPU, in one run.

`python -m benchmarks.schemes [--quick] [--json FILE] [--only TEXT]`. Ours is the way that the command takes, checks of
parts and shape included. A peer that makes other values than ours is an error, not a row. Every ratio is of medians
taken turn by turn.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import scheme_peers as peers
from benchmarks.timing import Row, Table, turn_by_turn
from ninfer_core.schemes import run
from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.ggml.forms import form_name
from ninfer_core.schemes.ggml.types import BLOCKS

ROWS, COLUMNS = 1024, 4096  # 2**22 weights, 16 MB decoded
BUFFERS = 3
GROUP = 128


@dataclass(frozen=True)
class Work:
    """A form with stored arrays of one tensor and decoders of others by their names."""

    form: str
    shape: tuple[int, ...]
    parts: tuple[dict[str, NDArray[Any]], ...]  # one for each buffer
    params: dict[str, Any]
    others: dict[str, peers.Decoder | None]


def works() -> Iterator[Work]:
    """Every form that is measured. Scales are numbers: infinities and NaN take ways of their own."""
    drawn = np.random.default_rng(0)
    shape = ROWS, COLUMNS

    def bytes_of(*counts: int) -> NDArray[np.uint8]:
        return drawn.integers(0, 256, counts, np.uint8)

    def halves(*counts: int) -> NDArray[np.float16]:
        return (0.01 + 0.01 * drawn.random(counts)).astype(np.float16)

    def words(*counts: int) -> NDArray[np.int32]:
        return drawn.integers(-(1 << 31), 1 << 31, counts, np.int32)

    for block in BLOCKS:
        if block.direct or block.id is None:
            continue
        buffers = []
        for _ in range(BUFFERS):
            records = block.records(bytes_of(ROWS * COLUMNS // block.values * block.bytes))
            for name in block.scales:
                records[name] = halves(len(records)).view(np.uint16)
            if block.name == "IQ1_M":  # whose scale is the top nibbles of four words
                records["scales"] = records["scales"] & 0x0FFF | np.array([0, 0, 0, 0x2000], np.uint16)
            buffers.append({"payload": records.view(np.uint8)})
        others = {
            "gguf, numpy": peers.gguf(block.name, block.bytes),
            "ggml, C": peers.ggml(block.id, block.bytes, block.values),
        }
        yield Work(form_name(block), shape, tuple(buffers), {}, others)

    def several(**parts: Any) -> tuple[dict[str, NDArray[Any]], ...]:
        return tuple({name: make() for name, make in parts.items()} for _ in range(BUFFERS))

    fours = several(
        payload=lambda: bytes_of(ROWS * COLUMNS // 2),
        absmax=lambda: drawn.random(ROWS * COLUMNS // 64).astype(np.float32),
    )
    yield Work("bnb_nf4", shape, fours, {}, {"bitsandbytes": peers.bitsandbytes("nf4", 64)})
    exponents = several(
        weight_packed=lambda: bytes_of(ROWS, COLUMNS // 2),
        weight_scale=lambda: drawn.integers(100, 130, (ROWS, COLUMNS // 32), np.uint8),
    )
    yield Work("mxfp4", shape, exponents, {}, {"compressed-tensors": peers.compressed_tensors(*shape, 32)})
    twins = several(
        weight_packed=lambda: bytes_of(ROWS, COLUMNS // 2),
        weight_scale=lambda: drawn.integers(1, 126, (ROWS, COLUMNS // 16), np.uint8),
        weight_global_scale=lambda: np.array([37.5], np.float32),
    )
    yield Work("nvfp4_ct", shape, twins, {}, {"compressed-tensors": peers.compressed_tensors(*shape, 16)})
    columns = several(
        qweight=lambda: words(COLUMNS // 8, ROWS),
        qzeros=lambda: words(COLUMNS // GROUP, ROWS // 8),
        scales=lambda: halves(COLUMNS // GROUP, ROWS),
        g_idx=lambda: (np.arange(COLUMNS) // GROUP).astype(np.int32),
    )
    four = {"bits": 4, "group_size": GROUP}
    yield Work("gptq", (COLUMNS, ROWS), columns, four, {"torch": peers.torch_columns(COLUMNS, ROWS, GROUP)})
    rows = several(
        qweight=lambda: words(COLUMNS, ROWS // 8),
        qzeros=lambda: words(COLUMNS // GROUP, ROWS // 8),
        scales=lambda: halves(COLUMNS // GROUP, ROWS),
    )
    awq = {"torch": peers.torch_rows(COLUMNS, ROWS, GROUP)}
    yield Work("awq", (COLUMNS, ROWS), rows, {"group_size": GROUP}, awq)
    (blocks,) = several(
        B=lambda: bytes_of(ROWS, COLUMNS // 32, 16),
        scales=lambda: drawn.random((ROWS, COLUMNS // 32)).astype(np.float32),
        zero_points=lambda: bytes_of(ROWS, COLUMNS // 64),
    )[:1]
    params = {"bits": 4, "block_size": 32}
    # onnxruntime holds its arrays in the model: one buffer for both.
    dequantize = {"onnxruntime": peers.onnxruntime(blocks, *shape, 32)}
    yield Work("matmulnbits", shape, (blocks,) * BUFFERS, params, dequantize)


def measure(work: Work, repeats: int, table: Table) -> None:
    """A row for each peer. Raises: SystemExit, where one decodes to other values than ours."""
    form = FORMS[work.form]

    def ours(i: int) -> NDArray[np.float32]:
        return run.decode(form, work.parts[i % BUFFERS], work.shape, work.params)

    for name, other in work.others.items():
        if other is None:
            continue

        def theirs(i: int, other: peers.Decoder = other) -> NDArray[np.float32]:
            return other(work.parts[i % BUFFERS])

        if not np.array_equal(ours(0).ravel(), theirs(0).ravel()):
            sys.exit(f"{work.form}: {name} decodes to other values than ours, so there is nothing to compare")
        base, own = turn_by_turn((theirs, ours), repeats, BUFFERS)
        speed = f"{ROWS * COLUMNS / own / 1e9:.2f} Gw/s"
        table.add(Row(f"decode {work.form} / {name}", speed, base / own, 1.0))


def main() -> None:
    """Measure, print, and store what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="forms whose names hold TEXT")
    options = parser.parse_args()
    table = Table("schemes")
    for work in works():
        if options.only in work.form:
            measure(work, 5 if options.quick else 25, table)
    if not table.rows:
        sys.exit(
            "nothing was measured: no such form, or none of the packages is installed (make bench-schemes)"
        )
    if options.json:
        table.write(options.json)


if __name__ == "__main__":
    main()
