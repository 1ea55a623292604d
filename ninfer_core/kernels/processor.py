"""What verification, derivation and conversion ask of a device: the functions of `kernels.cpu`, and who ran them.

A processor is shared by the threads of a pass. Importing this module loads no compiler; `host` and `gpu` do.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from numpy.typing import NDArray

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, GroupedFormat
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
    from ninfer_core.kernels.host import Cpu

Words = NDArray[Any]
ROWS: Final = FP8_E4M3FN_ROW_BF16S.name
BLOCKS: Final = NVFP4.name
Produced = Mapping[str, tuple[str, ...]]
"""Names of kernels that ran, sorted, by the name of the device: {"cpu": ("check.Q4G64_F16S.cpu", ...)}."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A kernel that another device answered for."""

    device: str
    kernel: str
    reason: str


class Processor(Protocol):
    """The operations on blocks; arguments, results and exceptions are those of the same names in `kernels.cpu`.

    Whatever the device, the answers are the same to the last bit.
    """

    @property
    def device(self) -> "Device": ...

    def produced(self) -> Produced:
        """What ran for the calling thread since it asked last."""
        ...

    def failures(self) -> tuple[Failure, ...]:
        """What failed over for the calling thread since it asked last."""
        ...

    def encode(
        self, fmt: GroupedFormat, source: Words, dtype: str, out: GroupedPlanes
    ) -> EncodeFault | EncodeCounts: ...

    def largest_magnitudes(self, source: Words, dtype: str) -> Words: ...

    def encode_rows(
        self, source: Words, dtype: str, largest: Words, codes: Words, scales: Words
    ) -> EncodeFault | EncodeCounts: ...

    def scan_grouped(self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int: ...

    def scan_row(self, codes: Words, scales: Words) -> int: ...

    def scan_block_scales(self, scales: Words) -> int: ...

    def same_bytes(self, a: Words, b: Words) -> bool: ...

    def statistics_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
    ) -> None: ...

    def statistics_row(self, codes: Words, scales: Words, acc: CodeStatistics) -> None: ...

    def statistics_nvfp4(self, codes: Words, scales: Words, acc: CodeStatistics) -> None: ...

    def statistics_direct(self, words: Words, dtype: str) -> WordStatistics: ...

    def reconstruct_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: Words
    ) -> None: ...

    def reconstruct_row(self, codes: Words, scales: Words, out: Words) -> None: ...

    def reconstruct_nvfp4(self, codes: Words, scales: Words, divisor: int, out: Words) -> None: ...

    def error_sums_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums: ...

    def parity_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
    ) -> ErrorSums | None: ...

    def survey_grouped(
        self,
        fmt: GroupedFormat,
        columns: int,
        planes: GroupedPlanes,
        source: Words,
        dtype: str,
        acc: CodeStatistics,
    ) -> ErrorSums | None:
        """The answer of `parity_grouped`, where `scan_grouped` finds nothing, and the counts of `statistics_grouped`.

        One journey of the words for all three. Where it is None, what was added to `acc` is undefined.
        """
        ...

    def error_sums_words(
        self, source: Words, stored: Words, dtype: str, stored_dtype: str | None = None
    ) -> ErrorSums: ...


class Recorder(threading.local):
    """Names of the kernels that ran in this thread, by device."""

    def __init__(self) -> None:
        self._names: set[tuple[str, str]] = set()

    def add(self, device: str, operation: str, fmt: str, dtype: str | None = None) -> None:
        """Note that a kernel gave an answer; `device` is a name such as "cuda:0", whose class names the kernel."""
        self._names.add((device, kernel_name(operation, fmt, dtype, device.partition(":")[0])))

    def take(self) -> Produced:
        """What was noted, and forget it."""
        taken, self._names = self._names, set()
        return _produced(frozenset(taken))


class Failures(threading.local):
    """What failed over in this thread."""

    def __init__(self) -> None:
        self._noted: list[Failure] = []

    def add(self, failure: Failure) -> None:
        """Note one."""
        self._noted.append(failure)

    def take(self) -> tuple[Failure, ...]:
        """What was noted, and forget it."""
        taken, self._noted = tuple(self._noted), []
        return taken


@cache
def kernel_name(operation: str, fmt: str, dtype: str | None, device_class: str) -> str:
    """What the registry of kernels calls a combination."""
    return ".".join(part for part in (operation, fmt, dtype, device_class) if part is not None)


def merge_produced(parts: Iterable[Produced]) -> Produced:
    """All that ran in any of them."""
    return _produced(
        frozenset((one, name) for part in parts for one, names in part.items() for name in names)
    )


def produced_json(produced: Produced) -> dict[str, list[str]]:
    """JSON values, of their own."""
    return {device: list(names) for device, names in produced.items()}


def nothing_ran() -> Produced:
    """The same empty one always."""
    return _produced(frozenset())


@cache  # half a million objects share a handful of these
def _produced(pairs: frozenset[tuple[str, str]]) -> Produced:
    devices = sorted({device for device, _ in pairs})
    return {one: tuple(sorted(name for device, name in pairs if device == one)) for one in devices}


def output_dtype(out: Words) -> str:
    """What a reconstruction writes into `out`."""
    return "FP32" if out.dtype.itemsize == 4 else "BF16"


def format_of_words(dtype: str) -> str:
    """The direct format that words called `dtype` are stored in; the name itself where there is none."""
    return "FP32" if dtype == "F32" else dtype


@cache
def cpu_processor() -> "Cpu":
    """The processor of this machine, one for all who ask; the first asks for the compiler as well."""
    from ninfer_core.kernels.host import Cpu

    return Cpu()
