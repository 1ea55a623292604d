"""The closed whitelist of kernels: which operation runs on which format, words, shapes and device, under which profile.

Nothing is combined at run time: what is not a row here is refused, and no generic path stands in (tensor-formats 2).
Importing this module loads no compiler.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

from ninfer_core.compute import (
    CHECK_WORDS_V1,
    ENCODE_GROUPED_V1,
    ENCODE_ROWS_V1,
    MATVEC_BF16_FP32ACC_V1,
    PARITY_SUMS_V1,
    RECONSTRUCT_BF16_V1,
    RECONSTRUCT_FP32_V1,
    STATISTICS_V1,
    ComputeProfile,
    Operation,
)
from ninfer_core.errors import NinferError
from ninfer_core.formats import (
    BF16,
    DIRECT,
    FP8_E4M3FN_ROW_BF16S,
    FP32,
    GROUPED,
    NVFP4,
    QUANTIZED,
    NumericFormat,
)
from ninfer_core.identity import canonical_digest
from ninfer_core.kernels.sources import DeviceClass, sources_digest
from ninfer_core.layouts import Layout, canonical_layout
from ninfer_core.layouts.base import Shape
from ninfer_core.registry import Closed


class NoKernel(NinferError):
    """A combination that the whitelist does not hold."""

    code = "no_kernel"


@dataclass(frozen=True, slots=True)
class Regime:
    """The shapes that a kernel takes."""

    name: str
    meaning: str
    holds: Callable[[Shape], bool]


def _matrix(shape: Shape) -> bool:
    return len(shape) == 2 and min(shape) >= 1 and prod(shape) < 1 << 63


ANY_WORDS: Final = Regime(
    "any-words",
    "rank 0 to 16, positive dimensions, below 2**63 elements",
    lambda shape: len(shape) <= 16 and all(n >= 1 for n in shape) and prod(shape) < 1 << 63,
)
ANY_ROWS: Final = Regime("any-rows", "a matrix [N, K], N and K positive, below 2**63 elements", _matrix)
NVFP4_TILES: Final = Regime(
    "nvfp4-tiles",
    "a matrix [N, K], N a multiple of 128 and K of 64, below 2**63 elements",
    lambda shape: _matrix(shape) and shape[0] % 128 == 0 and shape[1] % 64 == 0,
)
# The criterion of the product bounds sums of fewer than 2**20 terms.
MATVEC_ROWS: Final = Regime(
    "matvec-rows",
    "a matrix [N, K], N and K positive, K below 2**20, below 2**63 elements",
    lambda shape: _matrix(shape) and shape[1] < 1 << 20,
)
MATVEC_TILES: Final = Regime(
    "matvec-tiles",
    "a matrix [N, K], N a multiple of 128 and K of 64, K below 2**20, below 2**63 elements",
    lambda shape: NVFP4_TILES.holds(shape) and shape[1] < 1 << 20,
)

REGIMES: Final[Closed[Regime]] = Closed(
    "shape regime", ANY_WORDS, ANY_ROWS, NVFP4_TILES, MATVEC_ROWS, MATVEC_TILES
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of the whitelist.

    `dtype` names the words beside the stored ones: of the source (encode, parity), of the output (reconstruct), of the
    activation (matvec); None for check and statistics.
    """

    operation: Operation
    format: NumericFormat
    layout: Layout
    dtype: str | None
    regime: Regime
    profile: ComputeProfile
    device_class: DeviceClass

    @property
    def name(self) -> str:
        """Operation, format, words and device class, as `encode.Q4G64_F16S.BF16.cpu`."""
        parts = (self.operation, self.format.name, self.dtype, self.device_class)
        return ".".join(part for part in parts if part is not None)

    @property
    def digest(self) -> str:
        """Of the RFC 8785 form of this row and of the digest of the sources that kernels of its device class use."""
        return canonical_digest(
            {
                "operation": self.operation,
                "format": self.format.name,
                "layout": self.layout.name,
                "dtype": self.dtype,
                "regime": self.regime.name,
                "compute_profile": self.profile.digest,
                "device_class": self.device_class,
                "sources_sha256": sources_digest(self.device_class),
            }
        )


def _regime(operation: Operation, fmt: NumericFormat) -> Regime:
    if operation == "matvec":
        return MATVEC_TILES if fmt is NVFP4 else MATVEC_ROWS
    if fmt in DIRECT:
        return ANY_WORDS
    return NVFP4_TILES if fmt is NVFP4 else ANY_ROWS


def _rows(device_class: DeviceClass) -> Iterator[Kernel]:
    def row(profile: ComputeProfile, fmt: NumericFormat, dtype: str | None) -> Kernel:
        layout, regime = canonical_layout(fmt), _regime(profile.operation, fmt)
        return Kernel(profile.operation, fmt, layout, dtype, regime, profile, device_class)

    cpu = device_class == "cpu"
    sources = ("BF16", "F16", "F32")
    every_source = (*sources, "F64") if cpu else sources
    yield from (row(ENCODE_GROUPED_V1, fmt, dtype) for fmt in GROUPED for dtype in every_source)
    if cpu:
        yield from (row(ENCODE_ROWS_V1, FP8_E4M3FN_ROW_BF16S, dtype) for dtype in sources)
    yield from (row(RECONSTRUCT_FP32_V1, fmt, "FP32") for fmt in QUANTIZED)
    yield from (row(RECONSTRUCT_BF16_V1, fmt, "BF16") for fmt in QUANTIZED)
    yield from (row(CHECK_WORDS_V1, fmt, None) for fmt in QUANTIZED)
    yield from (row(STATISTICS_V1, fmt, None) for fmt in STATISTICS_V1.formats)
    yield from (row(PARITY_SUMS_V1, fmt, dtype) for fmt in GROUPED for dtype in every_source)
    yield from (row(PARITY_SUMS_V1, fmt, dtype) for fmt in (BF16, FP32) for dtype in every_source)
    yield from (row(MATVEC_BF16_FP32ACC_V1, fmt, "BF16") for fmt in QUANTIZED)


KERNELS: Final[Closed[Kernel]] = Closed("kernel", *_rows("cpu"), *_rows("cuda"))


def find_kernel(
    operation: Operation,
    fmt: NumericFormat,
    dtype: str | None,
    device_class: DeviceClass,
    *,
    shape: Shape | None = None,
) -> Kernel:
    """The kernel for exactly this combination, and for `shape` where one is given. Raises: NoKernel."""
    for kernel in KERNELS:
        asked = (kernel.operation, kernel.format, kernel.dtype, kernel.device_class)
        if asked == (operation, fmt, dtype, device_class):
            if shape is None or kernel.regime.holds(shape):
                return kernel
            raise NoKernel(f"{kernel.name} does not take the shape {list(shape)}: {kernel.regime.meaning}")
    words = "" if dtype is None else f" with {dtype} words"
    raise NoKernel(f"no kernel does {operation} of {fmt.name}{words} on a device of class {device_class}")
