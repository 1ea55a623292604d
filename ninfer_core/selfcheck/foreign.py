"""Kernels of somebody else as a processor of ours: whole payloads on their side, planes and blocks on this one.

They are asked the questions that our own kernels are asked, and reported on in the same way, under names and digests of
their own. Only `encode` and `reconstruct` can be theirs. How many scales were rescued or lanes clamped is not asked of
them, nor which lane of a refused group is at fault: the counts that they give are zero, and their refusals have no lane.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import CannotRead, Usage
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, BlockFormat, GroupedFormat, NumericFormat
from ninfer_core.kernels.devices import Device, find_device
from ninfer_core.kernels.processor import Produced, output_dtype
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import EncodeCounts, EncodeFault, GroupedPlanes
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.arrays import Bytes
from ninfer_core.layouts.base import gaps
from ninfer_core.layouts.block_scale import swizzle
from ninfer_core.selfcheck.apart import Apart
from ninfer_core.selfcheck.drawn import WORDS
from ninfer_core.selfcheck.origin import code_digest, words_like
from ninfer_core.selfcheck.protocol import REFUSALS, ForeignFailed, Hung, NotOffered, Reply, Status

_ONE: Final = 0x3F800000  # a divisor
_UNCOUNTED: Final = EncodeCounts(0, 0)  # no question compares it


class Foreign:
    """The processor; `timer` counts seconds, and `clock` is the timer that a self-check of it takes."""

    def __init__(self, kind: str, target: str, timer: Callable[[], float], **limits: float) -> None:
        self._apart = Apart(kind, target, **limits)
        self._timer, self._outside = timer, 0.0
        self.name = f"{kind} {target.rpartition('/')[2]}"
        self.origin = code_digest(kind, target)
        self._code = kind, target
        self._hung: dict[tuple[str, str, str], Hung] = {}  # by function, format and dtype

    @property
    def device(self) -> Device:
        """This machine, running code that is not ours: no evidence of it can be taken for ours."""
        here = find_device("cpu")
        runtime = f"{self.name} {self.origin}"
        return Device("foreign", "cpu", here.model, here.capability, None, runtime, "compiler not known")

    def clock(self) -> float:
        """Seconds, as if the foreign functions were called without us in between."""
        return self._timer() - self._outside

    @contextmanager
    def _not_timed(self) -> Iterator[None]:
        """Everything but the foreign functions: crossing to their process, packing, counting."""
        begin, inside = self._timer(), self._apart.inside
        try:
            yield
        finally:
            self._outside += self._timer() - begin - (self._apart.inside - inside)

    def produced(self) -> Produced:
        """Nothing: what these kernels make is checked and goes nowhere."""
        return {}

    def close(self) -> None:
        """End their process."""
        self._apart.close()

    def names_like(self, formats: Iterable[str]) -> tuple[str, ...]:
        """Words in their code that resemble one of these formats, and are the name of none."""
        return words_like(*self._code, formats)

    def offers(self, kernel: Kernel) -> bool:
        """Whether they do what a row of the whitelist says, found by asking for something small.

        Raises: ForeignFailed when they cannot be loaded.
        """
        self._apart.start()
        fmt, dtype = kernel.format, str(kernel.dtype)
        function = "encode" if kernel.operation == "encode" else "decode"
        try:
            if kernel.operation == "encode":
                self._encoded(fmt, np.zeros((1, 1), WORDS[dtype]), dtype)
            else:
                shape = (128, 64) if isinstance(fmt, BlockFormat) else (1, 1)
                payload = np.zeros(canonical_layout(fmt).encoded_size(fmt, shape), np.uint8)
                if isinstance(fmt, BlockFormat):
                    payload[-4:] = np.array([_ONE], "<u4").view(np.uint8)
                self._decoded(
                    fmt, shape, payload, np.empty(shape, np.uint32 if dtype == "FP32" else np.uint16)
                )
        except NotOffered:
            return False
        except Hung as hung:  # asked again, it would take as long
            self._hung[function, fmt.name, dtype] = hung
            return True
        except ForeignFailed:  # the questions will tell
            return True
        return True

    def encode(
        self, fmt: GroupedFormat, source: NDArray[Any], dtype: str, out: GroupedPlanes
    ) -> EncodeFault | EncodeCounts:
        """See `Processor.encode`. Raises: ForeignFailed."""
        with self._not_timed():
            payload = self._encoded(fmt, source, dtype)
            if isinstance(payload, EncodeFault):
                return payload
            for target, words in zip(_present(out), _planes(fmt, source.shape, payload), strict=True):
                target[:] = words
            return _UNCOUNTED

    def largest_magnitudes(self, source: NDArray[Any], dtype: str) -> NDArray[np.uint32]:
        """Nothing that is used: their encoder is given whole rows."""
        return np.zeros(source.shape[0], np.uint32)

    def encode_rows(
        self,
        source: NDArray[Any],
        dtype: str,
        largest: NDArray[Any],
        codes: Bytes,
        scales: NDArray[np.uint16],
    ) -> EncodeFault | EncodeCounts:
        """See `Processor.encode_rows`; `source` holds whole rows. Raises: ForeignFailed."""
        with self._not_timed():
            payload = self._encoded(FP8_E4M3FN_ROW_BF16S, source, dtype)
            if isinstance(payload, EncodeFault):
                return payload
            codes.reshape(-1)[:], scales[:] = _planes(FP8_E4M3FN_ROW_BF16S, source.shape, payload)
            return _UNCOUNTED

    def reconstruct_grouped(
        self, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: NDArray[Any]
    ) -> None:
        """See `Processor.reconstruct_grouped`. Raises: ForeignFailed."""
        shape = (out.size // columns, columns)
        with self._not_timed():
            self._decoded(fmt, shape, _payload(fmt, shape, _present(planes)), out)

    def reconstruct_row(self, codes: Bytes, scales: NDArray[np.uint16], out: NDArray[Any]) -> None:
        """See `Processor.reconstruct_row`. Raises: ForeignFailed."""
        with self._not_timed():
            payload = _payload(FP8_E4M3FN_ROW_BF16S, codes.shape, (codes, scales))
            self._decoded(FP8_E4M3FN_ROW_BF16S, codes.shape, payload, out)

    def reconstruct_nvfp4(self, codes: Bytes, scales: Bytes, divisor: int, out: NDArray[Any]) -> None:
        """See `Processor.reconstruct_nvfp4`; the scales are swizzled on the way. Raises: ForeignFailed."""
        shape = (scales.shape[0], scales.shape[1] * NVFP4.group)
        with self._not_timed():
            planes = (codes, swizzle(scales), np.array([divisor], np.uint32))
            self._decoded(NVFP4, shape, _payload(NVFP4, shape, planes), out)

    def _encoded(self, fmt: NumericFormat, source: NDArray[Any], dtype: str) -> Bytes | EncodeFault:
        room = canonical_layout(fmt).encoded_size(fmt, source.shape)
        self._require_awake("encode", fmt, dtype)
        reply, payload = self._apart.call("encode", fmt.name, dtype, source.shape, source, room)
        for kind, status in REFUSALS.items():
            if reply.status == status:
                return EncodeFault(kind, reply.row, reply.group, None, 0)
        self._require_ok(f"encode of {fmt.name} from {dtype}", reply)
        return payload

    def _decoded(self, fmt: NumericFormat, shape: tuple[int, ...], payload: Bytes, out: NDArray[Any]) -> None:
        self._require_awake("decode", fmt, output_dtype(out))
        reply, words = self._apart.call("decode", fmt.name, output_dtype(out), shape, payload, out.nbytes)
        self._require_ok(f"decode of {fmt.name} to {output_dtype(out)}", reply)
        out.reshape(-1)[:] = words.view(out.dtype)

    def _require_awake(self, function: str, fmt: NumericFormat, dtype: str) -> None:
        """Raises: Hung where it hung when it was asked what it offers."""
        if (function, fmt.name, dtype) in self._hung:
            raise Hung(str(self._hung[function, fmt.name, dtype]))

    def _require_ok(self, what: str, reply: Reply) -> None:
        if reply.status == Status.UNSUPPORTED:
            raise NotOffered(f"{what} is not offered")
        if reply.status != Status.OK:
            raise ForeignFailed(f"{what}: {reply.note or f'it answered with status {reply.status}'}")


def library(path: Path, timer: Callable[[], float], **limits: float) -> Foreign:
    """Kernels in a shared library. Raises: CannotRead."""
    if not path.is_file():
        raise CannotRead(f"there is no shared library {path}")
    return Foreign("library", str(path.resolve()), timer, **limits)


def python(target: str, timer: Callable[[], float], **limits: float) -> Foreign:
    """Kernels in a Python object, `package.module:object`. Raises: Usage."""
    module, _, name = target.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise Usage(f"{target!r} is no package.module:object")
    return Foreign("python", target, timer, **limits)


def _present(planes: GroupedPlanes) -> tuple[NDArray[Any], ...]:
    """The planes that the layout has."""
    return tuple(plane for plane in (planes.base, planes.high, planes.scales) if plane.size)


def _payload(fmt: NumericFormat, shape: tuple[int, ...], planes: Iterable[NDArray[Any]]) -> Bytes:
    layout = canonical_layout(fmt)
    payload = np.zeros(layout.encoded_size(fmt, shape), np.uint8)
    for plane, words in zip(layout.planes(fmt, shape), planes, strict=True):
        flat = np.ascontiguousarray(words).reshape(-1).view(np.uint8)
        payload[plane.span.offset : plane.span.offset + plane.span.length] = flat
    return payload


def _planes(fmt: NumericFormat, shape: tuple[int, ...], payload: Bytes) -> list[NDArray[Any]]:
    """The planes of a payload. Raises: ForeignFailed when a byte between them is not zero."""
    layout = canonical_layout(fmt)
    for gap in gaps(layout, fmt, shape):
        beyond = np.flatnonzero(payload[gap.offset : gap.offset + gap.length])
        if beyond.size:
            place = gap.offset + int(beyond[0])
            raise ForeignFailed(
                f"encode of {fmt.name} {list(shape)}: byte {place}, between two planes, is not zero"
            )
    spans = [(plane.span.offset, plane.span.length, plane.word) for plane in layout.planes(fmt, shape)]
    return [payload[offset : offset + length].copy().view(word) for offset, length, word in spans]
