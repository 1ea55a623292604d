"""The kernels of one CUDA device as a processor. Importing this module loads the compiler for such devices.

It does what the whitelist of kernels has for its class and refuses the rest; nothing is answered by another device.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.compute import Operation
from ninfer_core.formats import FORMATS, GroupedFormat
from ninfer_core.kernels import (
    gpu_encode,
    gpu_matvec,
    gpu_parity,
    gpu_reconstruct,
    gpu_scan,
    gpu_statistics,
    gpu_survey,
)
from ninfer_core.kernels.gpu_memory import Memory
from ninfer_core.kernels.processor import (
    BLOCKS,
    ROWS,
    Failure,
    Produced,
    Recorder,
    format_of_words,
    output_dtype,
)
from ninfer_core.kernels.registry import Kernel, NoKernel, find_kernel
from ninfer_core.kernels.values import (
    CodeStatistics,
    EncodeCounts,
    EncodeFault,
    ErrorSums,
    GroupedPlanes,
    WordStatistics,
)

if TYPE_CHECKING:
    from ninfer_core.kernels.devices import Device

Words = NDArray[Any]
_COPIES = 5


@cache
def require(operation: Operation, fmt: str, dtype: str | None = None) -> Kernel:
    """The kernel of the whitelist. Raises: NoKernel."""
    if fmt not in FORMATS:
        raise NoKernel(f"no kernel does {operation} of {fmt} words: they are no numeric format")
    return find_kernel(operation, FORMATS[fmt], dtype, "cuda")


class Gpu:
    """One device. Every method raises NoKernel for what the whitelist lacks, DeviceFailed when there is no answer."""

    def __init__(self, device: "Device", most_bytes: int | None = None) -> None:
        """`most_bytes` is what one thread may hold in the device's memory; None for all there is."""
        self.device = device
        self.memory = Memory(int(device.name.partition(":")[2]), most_bytes)
        self._ran = Recorder()

    def produced(self) -> Produced:
        """See `Processor.produced`."""
        return self._ran.take()

    def failures(self) -> tuple[Failure, ...]:
        """None: what fails here is raised."""
        return ()

    @contextmanager
    def _kernel(self, operation: Operation, fmt: str, dtype: str | None = None) -> Iterator[Memory]:
        """The device's memory, for a kernel of the whitelist; noted when it has given its answer. Raises: NoKernel."""
        require(operation, fmt, dtype)
        yield self.memory
        self._ran.add(self.device.name, operation, fmt, dtype)

    def encode(
        self, fmt: GroupedFormat, source: Words, dtype: str, out: GroupedPlanes
    ) -> EncodeFault | EncodeCounts:
        """See `cpu.encode`."""
        with self._kernel("encode", fmt.name, dtype) as memory:
            return gpu_encode.encode(memory, fmt, source, dtype, out)

    def largest_magnitudes(self, source: Words, dtype: str) -> Words:
        """Only a row encoder wants them. Raises: NoKernel."""
        raise NoKernel(f"no kernel encodes {dtype} words as {ROWS} on a device of class cuda")

    def encode_rows(
        self, source: Words, dtype: str, largest: Words, codes: Words, scales: Words
    ) -> EncodeFault | EncodeCounts:
        """Raises: NoKernel."""
        raise NoKernel(f"no kernel encodes {dtype} words as {ROWS} on a device of class cuda")

    def scan_grouped(self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
        """See `cpu.scan_grouped`."""
        with self._kernel("check", fmt.name) as memory:
            return gpu_scan.scan_grouped(memory, fmt, columns, planes)

    def scan_row(self, codes: Words, scales: Words) -> int:
        """See `cpu.scan_row`."""
        with self._kernel("check", ROWS) as memory:
            return gpu_scan.scan_row(memory, codes, scales)

    def scan_block_scales(self, scales: Words) -> int:
        """See `cpu.scan_block_scales`."""
        with self._kernel("check", BLOCKS) as memory:
            return gpu_scan.scan_block_scales(memory, scales)

    def same_bytes(self, a: Words, b: Words) -> bool:
        """Bytes in this machine's memory are compared there. Raises: NoKernel."""
        raise NoKernel("no kernel compares bytes on a device of class cuda")

    def statistics_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
    ) -> None:
        """See `cpu.statistics_grouped`."""
        with self._kernel("statistics", fmt.name) as memory:
            gpu_statistics.statistics_grouped(memory, fmt, columns, planes, acc)

    def statistics_row(self, codes: Words, scales: Words, acc: CodeStatistics) -> None:
        """See `cpu.statistics_row`."""
        with self._kernel("statistics", ROWS) as memory:
            gpu_statistics.statistics_row(memory, codes, scales, acc)

    def statistics_nvfp4(self, codes: Words, scales: Words, acc: CodeStatistics) -> None:
        """See `cpu.statistics_nvfp4`."""
        with self._kernel("statistics", BLOCKS) as memory:
            gpu_statistics.statistics_nvfp4(memory, codes, scales, acc)

    def statistics_direct(self, words: Words, dtype: str) -> WordStatistics:
        """See `cpu.statistics_direct`."""
        with self._kernel("statistics", format_of_words(dtype)) as memory:
            return gpu_statistics.statistics_direct(memory, words, dtype)

    def reconstruct_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: Words
    ) -> None:
        """See `cpu.reconstruct_grouped`."""
        with self._kernel("reconstruct", fmt.name, output_dtype(out)) as memory:
            gpu_reconstruct.reconstruct_grouped(memory, fmt, columns, planes, out)

    def reconstruct_row(self, codes: Words, scales: Words, out: Words) -> None:
        """See `cpu.reconstruct_row`."""
        with self._kernel("reconstruct", ROWS, output_dtype(out)) as memory:
            gpu_reconstruct.reconstruct_row(memory, codes, scales, out)

    def reconstruct_nvfp4(self, codes: Words, scales: Words, divisor: int, out: Words) -> None:
        """See `cpu.reconstruct_nvfp4`."""
        with self._kernel("reconstruct", BLOCKS, output_dtype(out)) as memory:
            gpu_reconstruct.reconstruct_nvfp4(memory, codes, scales, divisor, out)

    def error_sums_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums:
        """See `cpu.error_sums_grouped`."""
        with self._kernel("parity", fmt.name, dtype) as memory:
            return gpu_parity.error_sums_grouped(memory, fmt, columns, planes, source, dtype)

    def parity_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums | None:
        """See `cpu.parity_grouped`."""
        with self._kernel("encode", fmt.name, dtype), self._kernel("parity", fmt.name, dtype) as memory:
            return gpu_survey.parity_grouped(memory, fmt, columns, planes, source, dtype)

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
        with (
            self._kernel("check", fmt.name),
            self._kernel("statistics", fmt.name),
            self._kernel("encode", fmt.name, dtype),
            self._kernel("parity", fmt.name, dtype) as memory,
        ):
            mask, sums = gpu_survey.survey_grouped(memory, fmt, columns, planes, source, dtype, acc)
        return None if mask else sums

    def error_sums_words(
        self, source: Words, stored: Words, dtype: str, stored_dtype: str | None = None
    ) -> ErrorSums:
        """See `cpu.error_sums_words`."""
        with self._kernel("parity", format_of_words(stored_dtype or dtype), dtype) as memory:
            return gpu_parity.error_sums_words(memory, source, stored, dtype, stored_dtype)

    def matvec_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, activation: Words, out: Words
    ) -> None:
        """See `matvec.matvec_grouped`."""
        with self._kernel("matvec", fmt.name, "BF16") as memory:
            gpu_matvec.matvec_grouped(memory, fmt, columns, planes, activation, out)

    def matvec_row(self, codes: Words, scales: Words, activation: Words, out: Words) -> None:
        """See `matvec.matvec_row`."""
        with self._kernel("matvec", ROWS, "BF16") as memory:
            gpu_matvec.matvec_row(memory, codes, scales, activation, out)

    def matvec_nvfp4(self, codes: Words, scales: Words, divisor: int, activation: Words, out: Words) -> None:
        """See `matvec.matvec_nvfp4`."""
        with self._kernel("matvec", BLOCKS, "BF16") as memory:
            gpu_matvec.matvec_nvfp4(memory, codes, scales, divisor, activation, out)

    def copy_rate(self, timer: Callable[[], float], size_bytes: int) -> float:
        """Bytes a second that the device copies inside its own memory, the best of a few times."""
        with self.memory.session():
            source = self.memory.upload("source", np.ones(size_bytes, np.uint8))
            target = self.memory.empty("out", size_bytes, np.uint8)
            seconds = []
            for _ in range(_COPIES):
                self.memory.wait()
                before = timer()
                self.memory.copy(source, target)
                self.memory.wait()
                seconds.append(timer() - before)
        return size_bytes / min(seconds)
