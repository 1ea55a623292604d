"""Kernels against copying memory, against plain numpy and against encoders of others, in one run.

`python -m benchmarks.kernels [--quick] [--json FILE]`. Beside a copy sources are at least 64 MB and rotate, so that
a copy within the last-level cache does not pass for memory. Every ratio is of medians taken turn by turn.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import Peer, c_quantizer, encode_numpy, gguf_quantizer, torch_encoder
from benchmarks.timing import Row, Table, on_threads, paired
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, GROUPED, NVFP4, Q4G64_F16S, W8G32_F16S, GroupedFormat
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, GroupedPlanes

ROWS, COLUMNS = 1024, 4096  # 2**22 weights, a production block
WEIGHTS = ROWS * COLUMNS
COPY_TARGETS = {"Q4G64_F16S": 0.70, "Q5G64_F16S": 0.50, "Q6G64_F16S": 0.50, "W8G32_F16S": 0.70}


class Bench:
    """Buffers and the table; one method per part of the table."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.table = Table("kernels")
        seed = np.random.default_rng(0)
        # 16 x 2**22 BF16 words are 128 MB, 8 x 2**22 binary32 words too.
        line = (seed.standard_normal(WEIGHTS) * 0.02).astype(np.float32).view(np.uint32)
        self.f32 = np.stack([np.roll(line, 4097 * i) for i in range(8)]).reshape(-1, ROWS, COLUMNS)
        self.bf16 = np.concatenate([(self.f32 >> 16).astype(np.uint16)] * 2)
        self.copies = {"BF16": np.zeros_like(self.bf16), "F32": np.zeros_like(self.f32)}

    def copy(self, dtype: str) -> Callable[[int], object]:
        """Copy one source buffer."""
        sources, targets = self.sources(dtype), self.copies[dtype]
        return lambda i: np.copyto(targets[i % len(targets)], sources[i % len(sources)])

    def sources(self, dtype: str) -> NDArray[np.unsignedinteger]:
        """Source buffers."""
        return self.bf16 if dtype == "BF16" else self.f32

    def encoder(self, fmt: GroupedFormat, dtype: str) -> Callable[[int], object]:
        """Encode one source buffer."""
        sources = self.sources(dtype)
        outs = [GroupedPlanes.empty(fmt, ROWS, COLUMNS) for _ in range(len(sources))]
        return lambda i: cpu.encode(fmt, sources[i % len(sources)], dtype, outs[i % len(outs)])

    def compare(
        self,
        work: str,
        reference: Callable[[int], object],
        measured: Callable[[int], object],
        buffers: int,
        target: float | None = None,
        better: str = ">=",
        weights: int = WEIGHTS,
        reference_share: float = 1.0,
    ) -> None:
        """Add a row: speed ratio reference / measured for >=, time ratio measured / reference for <=."""
        base, own = paired(reference, measured, buffers, self.repeats)
        ratio = base * reference_share / own
        speed = f"{weights / own / 1e9:.2f} Gw/s"
        self.table.add(Row(work, speed, ratio if better == ">=" else 1 / ratio, target, better))

    def encode(self) -> None:
        """Encoding."""
        torch = torch_encoder()
        self.quantizers()
        for dtype in ("BF16", "F32"):
            buffers = len(self.sources(dtype))
            for fmt in GROUPED:
                own = self.encoder(fmt, dtype)
                target = COPY_TARGETS[fmt.name] if dtype == "BF16" else 0.80
                self.compare(
                    f"encode {fmt.name} from {dtype} / memcpy", self.copy(dtype), own, buffers, target
                )
                two = on_threads(own, 2)
                self.compare(
                    f"encode {fmt.name} from {dtype}, 2 threads / 1 thread",
                    lambda i, own=own: (own(i), own(i + 1)),
                    two,
                    buffers,
                    1.3,
                    weights=2 * WEIGHTS,
                )
                if dtype == "BF16":
                    self.compare(
                        f"encode {fmt.name} from BF16, 1 thread / numpy",
                        lambda i, fmt=fmt: encode_numpy(fmt, self.bf16[i % 2]),
                        own,
                        2,
                    )
                    name = f"encode {fmt.name} from BF16, 2 threads / torch"
                    if torch is None:
                        self.table.add(Row(name, "", None, 20.0, note="torch not installed"))
                    else:
                        self.compare(
                            name,
                            lambda i, fmt=fmt, torch=torch: torch(fmt, self.bf16[i % 2]),
                            two,
                            2,
                            20.0,
                            weights=2 * WEIGHTS,
                            reference_share=2.0,
                        )

    def quantizers(self) -> None:
        """Our W8 and Q4 from binary32 against Q8_0 and Q4_0, which store as much: other formats, the same work."""
        values = self.f32.reshape(8, -1).view(np.float32)
        for name, peer in (("GGUF package, numpy", gguf_quantizer()), ("GGML reference, C", c_quantizer())):
            for fmt, theirs in ((W8G32_F16S, "Q8_0"), (Q4G64_F16S, "Q4_0")):
                work = f"encode {fmt.name} from F32 / {theirs}, {name}"
                if peer is None:
                    self.table.add(Row(work, "", None, note="not installed"))
                    continue

                def theirs_once(i: int, peer: Peer = peer, theirs: str = theirs) -> object:
                    return peer(theirs, values[i % 8])

                self.compare(work, theirs_once, self.encoder(fmt, "F32"), 2)

    def planes(self, fmt: GroupedFormat, zero: bool = False) -> list[GroupedPlanes]:
        """Encoded buffers of 64 MB and more in all, or all-zero ones."""
        count = {4: 32, 5: 26, 6: 22, 8: 16}[fmt.code_bits]
        result = []
        for i in range(count):
            out = GroupedPlanes.empty(fmt, ROWS, COLUMNS)
            if zero:
                for plane in (out.base, out.high, out.scales):
                    plane.fill(0)
            else:
                cpu.encode(fmt, self.bf16[i % len(self.bf16)], "BF16", out)
            result.append(out)
        return result

    def copy_bytes(self, size: int) -> Callable[[int], object]:
        """Copy `size` bytes, rotated over 128 MB."""
        source, target = self.bf16.reshape(-1).view(np.uint8), self.copies["BF16"].reshape(-1).view(np.uint8)
        places = source.size // size
        return lambda i: np.copyto(target[i % places * size :][:size], source[i % places * size :][:size])

    def scans(self) -> None:
        """Value checks, over the bytes of the payload."""
        for fmt in GROUPED:
            for zero in (False, True):
                planes = self.planes(fmt, zero)
                size = planes[0].base.size + planes[0].high.size + 2 * planes[0].scales.size
                self.compare(
                    f"check {fmt.name}, {'every scale zero' if zero else 'ordinary'} / memcpy",
                    self.copy_bytes(size),
                    lambda i, fmt=fmt, planes=planes: cpu.scan_grouped(fmt, COLUMNS, planes[i % len(planes)]),
                    len(planes),
                    1.25 if fmt is W8G32_F16S and not zero else 0.70,
                )
        codes = np.random.default_rng(1).integers(0, 0x7F, (16, ROWS, COLUMNS), dtype=np.uint8)
        for zero in (False, True):
            scales = np.full(ROWS, 0 if zero else 0x3F80, np.uint16)
            if zero:
                codes = np.zeros_like(codes)
            self.compare(
                f"check {FP8_E4M3FN_ROW_BF16S.name}, {'every scale zero' if zero else 'ordinary'} / memcpy",
                self.copy_bytes(WEIGHTS),
                lambda i, scales=scales, codes=codes: cpu.scan_row(codes[i % 16], scales),
                16,
                None if zero else 1.25,
            )

    def statistics(self) -> None:
        """Histograms and scales."""
        for fmt in GROUPED:
            planes, acc = self.planes(fmt), CodeStatistics.empty(fmt)
            size = planes[0].base.size + planes[0].high.size + 2 * planes[0].scales.size
            self.compare(
                f"statistics {fmt.name} / memcpy of the payload",
                self.copy_bytes(size),
                lambda i, fmt=fmt, planes=planes, acc=acc: cpu.statistics_grouped(
                    fmt, COLUMNS, planes[i % len(planes)], acc
                ),
                len(planes),
            )
        self.compare(
            "statistics BF16 / memcpy",
            self.copy("BF16"),
            lambda i: cpu.statistics_direct(self.bf16[i % 16], "BF16"),
            16,
        )

    def reconstruct(self) -> None:
        """Reconstruction; both time ratios are over copying the binary32 output."""
        seed = np.random.default_rng(2)
        fp8 = seed.integers(0, 0x7F, (16, ROWS, COLUMNS), dtype=np.uint8)
        fp8_scales = np.full(ROWS, 0x3C00, np.uint16)
        nvfp4 = seed.integers(0, 256, (32, ROWS, COLUMNS // 2), dtype=np.uint8)
        nvfp4_scales = seed.integers(1, 0x7F, (ROWS, COLUMNS // 16), dtype=np.uint8)
        outs: dict[str, NDArray[np.unsignedinteger]] = {
            "binary32": self.copies["F32"],
            "BF16": self.copies["BF16"],
        }
        for name, out in outs.items():
            target = 1.1 if name == "binary32" else 0.55
            for fmt in GROUPED:
                planes = self.planes(fmt)
                self.compare(
                    f"reconstruct {fmt.name} to {name}, time / memcpy",
                    self.copy("F32"),
                    lambda i, fmt=fmt, planes=planes, out=out: cpu.reconstruct_grouped(
                        fmt, COLUMNS, planes[i % len(planes)], out[i % len(out)]
                    ),
                    16,
                    target,
                    "<=",
                )
            self.compare(
                f"reconstruct {FP8_E4M3FN_ROW_BF16S.name} to {name}, time / memcpy",
                self.copy("F32"),
                lambda i, out=out: cpu.reconstruct_row(fp8[i % 16], fp8_scales, out[i % len(out)]),
                16,
                target,
                "<=",
            )
            self.compare(
                f"reconstruct {NVFP4.name} to {name}, time / memcpy",
                self.copy("F32"),
                lambda i, out=out: cpu.reconstruct_nvfp4(
                    nvfp4[i % 32], nvfp4_scales, 0x43C80000, out[i % len(out)]
                ),
                16,
                2.3 if name == "binary32" else None,
                "<=",
            )

    def parity(self) -> None:
        """Checks, error sums, canonical re-encode and comparison against a BF16 source."""
        for fmt in GROUPED:
            stored = self.planes(fmt)[:16]

            def whole(i: int, fmt: GroupedFormat = fmt, stored: list[GroupedPlanes] = stored) -> ErrorSums:
                source, planes = self.bf16[i % 16], stored[i % 16]
                assert cpu.scan_grouped(fmt, COLUMNS, planes) == 0
                sums = cpu.parity_grouped(fmt, COLUMNS, planes, source, "BF16")
                assert sums is not None
                return sums

            self.compare(
                f"parity {fmt.name} with BF16 / memcpy of the source", self.copy("BF16"), whole, 16, 0.30
            )
            self.compare(
                f"  error sums alone, any stored words, {fmt.name}",
                self.copy("BF16"),
                lambda i, fmt=fmt, stored=stored: cpu.error_sums_grouped(
                    fmt, COLUMNS, stored[i % 16], self.bf16[i % 16], "BF16"
                ),
                16,
            )


def main() -> None:
    """Measure, print, and store what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats: a look, not a measurement")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--only", choices=["encode", "scans", "statistics", "reconstruct", "parity"])
    options = parser.parse_args()
    bench = Bench(5 if options.quick else 25)
    for part in ("encode", "scans", "statistics", "reconstruct", "parity"):
        if options.only in (None, part):
            getattr(bench, part)()
    if options.json:
        bench.table.write(options.json)


if __name__ == "__main__":
    main()
