"""What kernels of somebody else look like, in Python or behind a C ABI, and what passes between them and us.

Two functions over whole tensors, each of which may be left out or refuse a combination:

    encode(format, dtype, source [N, K] words) -> payload in the layout of the format, or the first refused group
    decode(format, payload, (N, K), dtype)     -> words [N, K] of the represented values, FP32 or BF16

`examples/c-kernel/ninfer_kernels.h` is the same for shared libraries. Names are those of the registries, to the letter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import NinferError

ABI: Final = 1  # what `ninfer_abi` of a library answers


class Status(IntEnum):
    """What a function of a library returns."""

    OK = 0
    UNSUPPORTED = 1  # this format or dtype is not offered
    SOURCE_NOT_FINITE = 2
    SCALE_OVERFLOW = 3
    SCALE_UNDERFLOW = 4
    FAILED = 5  # could not, for a reason of its own


Refusal = Literal["source_not_finite", "scale_overflow", "scale_underflow"]
REFUSALS: Final[Mapping[Refusal, Status]] = {
    "source_not_finite": Status.SOURCE_NOT_FINITE,
    "scale_overflow": Status.SCALE_OVERFLOW,
    "scale_underflow": Status.SCALE_UNDERFLOW,
}


class PythonKernels(Protocol):
    """The object that `--kernels package.module:object` names; it may have one of the methods only."""

    def encode(self, format: str, dtype: str, source: NDArray[Any]) -> Any:  # noqa: A002  the word of the domain
        """The payload as bytes or uint8, `(refusal, row, group)` of the first refused group, or NotImplemented.

        `source` is read-only, uint16, uint32 or uint64 words [N, K] of `dtype` BF16, F16, F32 or F64.
        """
        ...

    def decode(self, format: str, payload: NDArray[np.uint8], shape: tuple[int, int], dtype: str) -> Any:  # noqa: A002
        """The words [N, K], uint32 for FP32 and uint16 for BF16, or NotImplemented."""
        ...


class ForeignFailed(NinferError):
    """A foreign kernel that gave no answer: it crashed, hung, wrote out of bounds, or said that it failed."""

    code = "foreign_failed"


class Hung(ForeignFailed):
    """A call that did not come back."""

    code = "foreign_hung"


class NotOffered(ForeignFailed):
    """A combination that the kernels say they do not have."""

    code = "not_offered"


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it crosses to the other process; the words themselves lie in shared memory."""

    function: str  # "encode" or "decode"
    format: str
    dtype: str
    rows: int
    columns: int
    given: tuple[int, int]  # offset and bytes of the input in the shared memory
    room: tuple[int, int]  # and of the output
    mapped: int  # bytes of shared memory that are to be mapped

    def __str__(self) -> str:
        return f"{self.function} of {self.format}, {self.dtype}, [{self.rows}, {self.columns}]"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call; `row` and `group` of the first refused group, `note` of a failure."""

    status: int
    row: int = 0
    group: int = 0
    seconds: float = 0.0  # inside the function
    note: str | None = None
