"""The kernels of this machine's own processor. Importing this module loads the compiler."""

from functools import cache
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from ninfer_core.compute import Operation
from ninfer_core.formats import FORMATS, GroupedFormat
from ninfer_core.kernels import cpu
from ninfer_core.kernels.devices import Device, find_device
from ninfer_core.kernels.processor import (
    BLOCKS,
    ROWS,
    Failure,
    Produced,
    Recorder,
    format_of_words,
    output_dtype,
)
from ninfer_core.kernels.registry import Kernel, find_kernel
from ninfer_core.kernels.values import (
    CodeStatistics,
    EncodeCounts,
    EncodeFault,
    ErrorSums,
    GroupedPlanes,
    WordStatistics,
)

Words = NDArray[Any]


def products() -> ModuleType:
    """The consumer's kernels, which few want."""
    from ninfer_core.kernels import matvec

    return matvec


@cache
def require(operation: Operation, fmt: str, dtype: str | None) -> Kernel:
    """The kernel of the whitelist. Raises: NoKernel."""
    return find_kernel(operation, FORMATS[fmt], dtype, "cpu")


class Cpu:
    """One for the process is enough: see `processor.cpu_processor`."""

    def __init__(self) -> None:
        self._ran = Recorder()

    @property
    def device(self) -> Device:
        """The first of `devices()`."""
        return find_device("cpu")

    def produced(self) -> Produced:
        """See `Processor.produced`."""
        return self._ran.take()

    def failures(self) -> tuple[Failure, ...]:
        """None: nothing stands behind this one."""
        return ()

    def _note(self, operation: Operation, fmt: str, dtype: str | None = None) -> None:
        """Note what runs. Raises: NoKernel, for what the whitelist lacks."""
        if fmt in FORMATS:  # words of a foreign file are counted too; no kernel answers for their format
            require(operation, fmt, dtype)
            self._ran.add("cpu", operation, fmt, dtype)

    def encode(
        self, fmt: GroupedFormat, source: Words, dtype: str, out: GroupedPlanes
    ) -> EncodeFault | EncodeCounts:
        """See `cpu.encode`."""
        self._note("encode", fmt.name, dtype)
        return cpu.encode(fmt, source, dtype, out)

    def largest_magnitudes(self, source: Words, dtype: str) -> Words:
        """See `cpu.largest_magnitudes`."""
        return cpu.largest_magnitudes(source, dtype)

    def encode_rows(
        self, source: Words, dtype: str, largest: Words, codes: Words, scales: Words
    ) -> EncodeFault | EncodeCounts:
        """See `cpu.encode_rows`."""
        self._note("encode", ROWS, dtype)
        return cpu.encode_rows(source, dtype, largest, codes, scales)

    def scan_grouped(self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
        """See `cpu.scan_grouped`."""
        self._note("check", fmt.name)
        return cpu.scan_grouped(fmt, columns, planes)

    def scan_row(self, codes: Words, scales: Words) -> int:
        """See `cpu.scan_row`."""
        self._note("check", ROWS)
        return cpu.scan_row(codes, scales)

    def scan_block_scales(self, scales: Words) -> int:
        """See `cpu.scan_block_scales`."""
        self._note("check", BLOCKS)
        return cpu.scan_block_scales(scales)

    def same_bytes(self, a: Words, b: Words) -> bool:
        """See `cpu.same_bytes`."""
        return cpu.same_bytes(a, b)

    def statistics_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
    ) -> None:
        """See `cpu.statistics_grouped`."""
        self._note("statistics", fmt.name)
        cpu.statistics_grouped(fmt, columns, planes, acc)

    def statistics_row(self, codes: Words, scales: Words, acc: CodeStatistics) -> None:
        """See `cpu.statistics_row`."""
        self._note("statistics", ROWS)
        cpu.statistics_row(codes, scales, acc)

    def statistics_nvfp4(self, codes: Words, scales: Words, acc: CodeStatistics) -> None:
        """See `cpu.statistics_nvfp4`."""
        self._note("statistics", BLOCKS)
        cpu.statistics_nvfp4(codes, scales, acc)

    def statistics_direct(self, words: Words, dtype: str) -> WordStatistics:
        """See `cpu.statistics_direct`."""
        self._note("statistics", format_of_words(dtype))
        return cpu.statistics_direct(words, dtype)

    def reconstruct_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: Words
    ) -> None:
        """See `cpu.reconstruct_grouped`."""
        self._note("reconstruct", fmt.name, output_dtype(out))
        cpu.reconstruct_grouped(fmt, columns, planes, out)

    def reconstruct_row(self, codes: Words, scales: Words, out: Words) -> None:
        """See `cpu.reconstruct_row`."""
        self._note("reconstruct", ROWS, output_dtype(out))
        cpu.reconstruct_row(codes, scales, out)

    def reconstruct_nvfp4(self, codes: Words, scales: Words, divisor: int, out: Words) -> None:
        """See `cpu.reconstruct_nvfp4`."""
        self._note("reconstruct", BLOCKS, output_dtype(out))
        cpu.reconstruct_nvfp4(codes, scales, divisor, out)

    def error_sums_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums:
        """See `cpu.error_sums_grouped`."""
        self._note("parity", fmt.name, dtype)
        return cpu.error_sums_grouped(fmt, columns, planes, source, dtype)

    def parity_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums | None:
        """See `cpu.parity_grouped`."""
        self._note("encode", fmt.name, dtype)
        self._note("parity", fmt.name, dtype)
        return cpu.parity_grouped(fmt, columns, planes, source, dtype)

    def survey_grouped(
        self,
        fmt: GroupedFormat,
        columns: int,
        planes: GroupedPlanes,
        source: Words,
        dtype: str,
        acc: CodeStatistics,
    ) -> ErrorSums | None:
        """See `Processor.survey_grouped`."""
        sums = self.parity_grouped(fmt, columns, planes, source, dtype)
        if sums is None or self.scan_grouped(fmt, columns, planes):
            return None
        self.statistics_grouped(fmt, columns, planes, acc)
        return sums

    def error_sums_words(
        self, source: Words, stored: Words, dtype: str, stored_dtype: str | None = None
    ) -> ErrorSums:
        """See `cpu.error_sums_words`."""
        self._note("parity", format_of_words(stored_dtype or dtype), dtype)
        return cpu.error_sums_words(source, stored, dtype, stored_dtype)

    def matvec_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, activation: Words, out: Words
    ) -> None:
        """See `matvec.matvec_grouped`."""
        self._note("matvec", fmt.name, "BF16")
        products().matvec_grouped(fmt, columns, planes, activation, out)

    def matvec_row(self, codes: Words, scales: Words, activation: Words, out: Words) -> None:
        """See `matvec.matvec_row`."""
        self._note("matvec", ROWS, "BF16")
        products().matvec_row(codes, scales, activation, out)

    def matvec_nvfp4(self, codes: Words, scales: Words, divisor: int, activation: Words, out: Words) -> None:
        """See `matvec.matvec_nvfp4`."""
        self._note("matvec", BLOCKS, "BF16")
        products().matvec_nvfp4(codes, scales, divisor, activation, out)
