"""A GPU with this machine's processor behind it, for the operations whose answers are the same words on both.

What the whitelist has no GPU kernel for is the processor's work from the start. When the device fails, the processor
answers, the failure is told, and the device is not asked again: whoever makes the next pass may try it anew. Consumer
operations and self-checks never come here; they are about the device that they name.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numpy.typing import NDArray

from ninfer_core.compute import Operation
from ninfer_core.errors import DeviceFailed
from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.devices import Device
from ninfer_core.kernels.processor import (
    BLOCKS,
    ROWS,
    Failure,
    Failures,
    Processor,
    Produced,
    cpu_processor,
    format_of_words,
    kernel_name,
    merge_produced,
    output_dtype,
)
from ninfer_core.kernels.registry import KERNELS
from ninfer_core.kernels.values import (
    CodeStatistics,
    EncodeCounts,
    EncodeFault,
    ErrorSums,
    GroupedPlanes,
    WordStatistics,
)

Words = NDArray[Any]
Answer = TypeVar("Answer")


def afresh(acc: CodeStatistics, ask: Callable[[Processor], Answer]) -> Callable[[Processor], Answer]:
    """`ask`, each time from the counts as they are now: a device that fails may have begun to add."""
    histogram, tallies = acc.histogram.copy(), acc.tallies.copy()

    def asked(processor: Processor) -> Answer:
        acc.histogram[:], acc.tallies[:] = histogram, tallies
        return ask(processor)

    return asked


class FailingOver:
    """Answers of `first` while it gives any, of `second` after that."""

    def __init__(self, first: Processor, second: Processor | None = None) -> None:
        """`second` is this machine's processor where none is given."""
        self._first, self._second = first, second or cpu_processor()
        self._failed = False
        self._failures = Failures()

    def leave(self) -> None:
        """Ask the first no more: it was found wrong."""
        self._failed = True

    @property
    def device(self) -> Device:
        """The one that is asked first."""
        return self._first.device

    def produced(self) -> Produced:
        """See `Processor.produced`."""
        return merge_produced((self._first.produced(), self._second.produced()))

    def failures(self) -> tuple[Failure, ...]:
        """See `Processor.failures`."""
        return self._failures.take()

    def _answer(
        self, operation: Operation, fmt: str, dtype: str | None, ask: Callable[[Processor], Answer]
    ) -> Answer:
        name = kernel_name(operation, fmt, dtype, self._first.device.device_class)
        if self._failed or name not in KERNELS:
            return ask(self._second)
        try:
            return ask(self._first)
        except DeviceFailed as error:
            self._failed = True
            self._failures.add(Failure(self.device.name, name, str(error)))
        return ask(self._second)

    def encode(
        self, fmt: GroupedFormat, source: Words, dtype: str, out: GroupedPlanes
    ) -> EncodeFault | EncodeCounts:
        """See `cpu.encode`."""
        return self._answer("encode", fmt.name, dtype, lambda one: one.encode(fmt, source, dtype, out))

    def largest_magnitudes(self, source: Words, dtype: str) -> Words:
        """See `cpu.largest_magnitudes`."""
        return self._answer("encode", ROWS, dtype, lambda one: one.largest_magnitudes(source, dtype))

    def encode_rows(
        self, source: Words, dtype: str, largest: Words, codes: Words, scales: Words
    ) -> EncodeFault | EncodeCounts:
        """See `cpu.encode_rows`."""
        return self._answer(
            "encode", ROWS, dtype, lambda one: one.encode_rows(source, dtype, largest, codes, scales)
        )

    def scan_grouped(self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
        """See `cpu.scan_grouped`."""
        return self._answer("check", fmt.name, None, lambda one: one.scan_grouped(fmt, columns, planes))

    def scan_row(self, codes: Words, scales: Words) -> int:
        """See `cpu.scan_row`."""
        return self._answer("check", ROWS, None, lambda one: one.scan_row(codes, scales))

    def scan_block_scales(self, scales: Words) -> int:
        """See `cpu.scan_block_scales`."""
        return self._answer("check", BLOCKS, None, lambda one: one.scan_block_scales(scales))

    def same_bytes(self, a: Words, b: Words) -> bool:
        """See `cpu.same_bytes`: no device has them nearer than this machine's processor."""
        return self._second.same_bytes(a, b)

    def statistics_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
    ) -> None:
        """See `cpu.statistics_grouped`."""
        ask = afresh(acc, lambda one: one.statistics_grouped(fmt, columns, planes, acc))
        self._answer("statistics", fmt.name, None, ask)

    def statistics_row(self, codes: Words, scales: Words, acc: CodeStatistics) -> None:
        """See `cpu.statistics_row`."""
        self._answer(
            "statistics", ROWS, None, afresh(acc, lambda one: one.statistics_row(codes, scales, acc))
        )

    def statistics_nvfp4(self, codes: Words, scales: Words, acc: CodeStatistics) -> None:
        """See `cpu.statistics_nvfp4`."""
        ask = afresh(acc, lambda one: one.statistics_nvfp4(codes, scales, acc))
        self._answer("statistics", BLOCKS, None, ask)

    def statistics_direct(self, words: Words, dtype: str) -> WordStatistics:
        """See `cpu.statistics_direct`."""
        fmt = format_of_words(dtype)
        return self._answer("statistics", fmt, None, lambda one: one.statistics_direct(words, dtype))

    def reconstruct_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: Words
    ) -> None:
        """See `cpu.reconstruct_grouped`."""
        self._answer(
            "reconstruct",
            fmt.name,
            output_dtype(out),
            lambda one: one.reconstruct_grouped(fmt, columns, planes, out),
        )

    def reconstruct_row(self, codes: Words, scales: Words, out: Words) -> None:
        """See `cpu.reconstruct_row`."""
        dtype = output_dtype(out)
        self._answer("reconstruct", ROWS, dtype, lambda one: one.reconstruct_row(codes, scales, out))

    def reconstruct_nvfp4(self, codes: Words, scales: Words, divisor: int, out: Words) -> None:
        """See `cpu.reconstruct_nvfp4`."""
        self._answer(
            "reconstruct",
            BLOCKS,
            output_dtype(out),
            lambda one: one.reconstruct_nvfp4(codes, scales, divisor, out),
        )

    def error_sums_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums:
        """See `cpu.error_sums_grouped`."""
        return self._answer(
            "parity",
            fmt.name,
            dtype,
            lambda one: one.error_sums_grouped(fmt, columns, planes, source, dtype),
        )

    def parity_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums | None:
        """See `cpu.parity_grouped`."""
        return self._answer(
            "parity", fmt.name, dtype, lambda one: one.parity_grouped(fmt, columns, planes, source, dtype)
        )

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
        ask = afresh(acc, lambda one: one.survey_grouped(fmt, columns, planes, source, dtype, acc))
        return self._answer("parity", fmt.name, dtype, ask)

    def error_sums_words(
        self, source: Words, stored: Words, dtype: str, stored_dtype: str | None = None
    ) -> ErrorSums:
        """See `cpu.error_sums_words`."""
        return self._answer(
            "parity",
            format_of_words(stored_dtype or dtype),
            dtype,
            lambda one: one.error_sums_words(source, stored, dtype, stored_dtype),
        )
