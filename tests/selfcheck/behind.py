"""The oracles as foreign kernels: whatever the way to them and back would break shows as a fault of theirs."""

from typing import Any

import numpy as np

from ninfer_core.encoders.maxabs_bf16s import ScaleUnderflow
from ninfer_core.encoders.maxabs_bf16s import encode_rows as rows_refused
from ninfer_core.encoders.maxabs_f16 import ScaleOverflow, SourceNotFinite
from ninfer_core.encoders.maxabs_f16 import encode_rows as groups_refused
from ninfer_core.formats import FORMATS, GroupedFormat
from ninfer_core.kernels.values import SOURCE_DTYPES
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.row_split import GroupedWords, pack
from ninfer_core.oracles.encoding import encode_grouped, encode_rows
from ninfer_core.selfcheck.drawn import widened
from ninfer_core.selfcheck.payloads import block_of
from ninfer_core.selfcheck.reconstruction import represented
from ninfer_core.words import narrow_bf16


class Oracles:
    """Every format, every dtype."""

    def encode(self, format: str, dtype: str, source: Any) -> Any:  # noqa: A002
        fmt = FORMATS[format]
        words = widened(dtype, source)
        largest = (words & 0x7FFFFFFF).max(axis=1)
        doubtful = (largest >= 0x7F80_0000) | (largest > 0) & (largest < 0x0480_0000)
        if isinstance(fmt, GroupedFormat):
            doubtful |= largest >= 0x4700_0000
        places = np.flatnonzero(doubtful)
        if places.size:
            refusal = self._refusal(fmt, dtype, source[places])
            if refusal is not None:
                code, row, group = refusal
                return code, int(places[row]), group
        if isinstance(fmt, GroupedFormat):
            made = encode_grouped(fmt, words)
            planes = [plane for plane in pack(fmt, GroupedWords(made.codes, made.scales)) if plane.size]
        else:
            rows = encode_rows(words)
            planes = [rows.codes, rows.scales]
        layout = canonical_layout(fmt)
        payload = np.zeros(layout.encoded_size(fmt, source.shape), np.uint8)
        for plane, content in zip(layout.planes(fmt, source.shape), planes, strict=True):
            span = plane.span
            payload[span.offset : span.offset + span.length] = content.reshape(-1).view(np.uint8)
        return payload.tobytes()

    def _refusal(self, fmt: Any, dtype: str, source: Any) -> tuple[str, int, int] | None:
        """By the exact oracle, which is slow: only of rows with a large word or none but tiny ones."""
        try:
            if isinstance(fmt, GroupedFormat):
                groups_refused(fmt, source.tolist(), SOURCE_DTYPES[dtype])
            else:
                rows_refused(source.tolist(), SOURCE_DTYPES[dtype])
        except (SourceNotFinite, ScaleOverflow, ScaleUnderflow) as error:
            return error.code, error.row, getattr(error, "group", 0)
        return None

    def decode(self, format: str, payload: Any, shape: tuple[int, int], dtype: str) -> Any:  # noqa: A002
        words = represented(block_of(FORMATS[format], shape, payload))
        return words if dtype == "FP32" else narrow_bf16(words)
