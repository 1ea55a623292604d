"""MX formats as separate tensors: 32 small floats share one power of two (OCP MX; scheme rule R9)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes import bits, small_floats
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import (
    Array,
    Form,
    Parameter,
    Params,
    Part,
    Parts,
    Shape,
    Slice,
    Values,
    stream_word,
)
from ninfer_core.schemes.run import refuse_shape
from ninfer_core.schemes.scales import finite_source, largest, sound_scales, words_of
from ninfer_core.schemes.small_floats import SmallFloat

BLOCK: Final = 32
_LARGEST_SCALE: Final = 254


@dataclass(frozen=True, slots=True)
class _Kind:
    """One MX format: `largest_exponent` is that of its largest number, which the scale rule subtracts."""

    name: str
    element: SmallFloat
    largest_exponent: int
    layouts: tuple[str, ...]

    @property
    def block_bytes(self) -> int:
        return BLOCK * self.element.bits // 8

    def stored(self, shape: Shape, params: Params) -> Mapping[str, Shape]:
        if not shape or shape[-1] % BLOCK:
            raise refuse_shape(self.name, shape, f"a last axis in whole blocks of {BLOCK}")
        *outer, length = shape
        blocks = length // BLOCK
        packed = {
            "rows": (*outer, blocks * self.block_bytes),
            "blocks": (*outer, blocks, self.block_bytes),
            "bytes": (*outer, length),
        }[params["layout"]]
        return {"weight_packed": packed, "weight_scale": (*outer, blocks)}

    def infer(self, stored: Mapping[str, Shape], params: Params) -> Shape:
        packed = stored.get("weight_packed", ())
        if params["layout"] == "bytes" and packed:
            return packed
        unit = self.block_bytes
        if params["layout"] == "blocks" and len(packed) >= 2 and packed[-1] == unit:
            return (*packed[:-2], packed[-2] * BLOCK)
        if params["layout"] == "rows" and packed and packed[-1] % unit == 0:
            return (*packed[:-1], packed[-1] // unit * BLOCK)
        raise refuse_shape(self.name, packed, f"weight_packed in whole blocks of {unit} bytes")

    def codes(self, packed: NDArray[np.uint8], params: Params) -> NDArray[np.uint8]:
        """[blocks, 32] codes; in a byte of its own a code has the low bits (R3)."""
        if params["layout"] == "bytes":
            return packed.reshape(-1, BLOCK) & np.uint8((1 << self.element.bits) - 1)
        return bits.codes_of(packed.reshape(-1, self.block_bytes), self.element.bits, BLOCK)

    def decode(self, parts: Parts, shape: Shape, params: Params) -> Values:
        """Element times 2**(e - 127) in binary32, NaN throughout the block where e is 255 (5.11, 5.12)."""
        codes = self.codes(parts["weight_packed"], params)
        scales = small_floats.expand_e8m0(words_of(parts["weight_scale"])).reshape(-1, 1)
        scaled: Values = small_floats.decode(self.element, codes) * scales
        return scaled.reshape(shape)

    def fast(self, parts: Parts, shape: Shape, params: Params) -> Values:
        """The same, compiled; a code for each byte is one lookup and is left to the plain decoder."""
        if params["layout"] == "bytes":
            return self.decode(parts, shape, params)
        from ninfer_core.schemes.compiled import mx

        scales = small_floats.expand_e8m0(words_of(parts["weight_scale"])).reshape(-1)
        table = small_floats.table(self.element).view(np.float32)
        run = mx.four_bits if self.element.bits == 4 else mx.six_bits
        return run(parts["weight_packed"].reshape(-1, self.block_bytes), scales, table).reshape(shape)

    def encode(self, values: Values, params: Params) -> dict[str, Array]:
        """The OCP rule: e - 127 = floor(log2 max) minus the element's largest exponent; nearest elements, saturating.

        A block of zeros has e = 0. Raises: CannotEncode for values that are not finite.
        """
        stored = self.stored(values.shape, params)
        blocks = finite_source(self.name, values).reshape(-1, BLOCK)
        top = largest(blocks, -1)
        # frexp gives a significand below one, so its exponent is floor(log2) + 1, subnormal numbers included.
        exponents = np.frexp(top)[1] - 1 - self.largest_exponent
        scales = np.where(top > 0, np.clip(exponents + small_floats.E8M0_BIAS, 0, _LARGEST_SCALE), 0)
        # A power of two: exact, but for quotients so small that they are zero codes either way.
        codes = small_floats.encode(self.element, np.ldexp(blocks, small_floats.E8M0_BIAS - scales))
        packed = codes if params["layout"] == "bytes" else bits.words_of(codes, self.element.bits)
        return {
            "weight_packed": packed.reshape(stored["weight_packed"]),
            "weight_scale": scales.astype(np.uint8).reshape(stored["weight_scale"]),
        }

    def unused_bits(self, parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
        """Bits above a code that has a byte of its own."""
        if params["layout"] == "bytes":
            packed = parts["weight_packed"]
            above = packed >> np.uint8(self.element.bits) != 0
            message = f"holds bytes with bits above the {self.element.bits} of a code"
            report(findings, "padding_nonzero", "weight_packed", above, packed, message, "zero bits")

    def word(self, params: Params) -> tuple[Slice, ...]:
        width = self.element.bits
        if params["layout"] == "bytes":
            return Slice("code", width), Slice("unused", 8 - width)
        return stream_word("value ", width, math.lcm(width, 8))

    def form(self, summary: str, **others: Any) -> Form:
        """The form of this format."""
        shapes = {
            "rows": f"[.., I/{BLOCK}*{self.block_bytes}]",
            "blocks": f"[.., I/{BLOCK}, {self.block_bytes}]",
            "bytes": "[.., I]",
        }
        meanings = {
            "rows": "packed along each row",
            "blocks": "packed with an axis of blocks",
            "bytes": "each code in a byte",
        }
        return Form(
            name=self.name,
            kind="file",
            summary=summary,
            axes=("out", "in"),
            parts=(
                Part(
                    "weight_packed",
                    ("uint8",),
                    " or ".join(shapes[layout] for layout in self.layouts),
                    f"codes of {self.element.bits} bits, low bits first",
                ),
                Part("weight_scale", ("float8_e8m0fnu", "uint8"), f"[.., I/{BLOCK}]", "E8M0, 255 is NaN"),
            ),
            parameters=(
                Parameter(
                    "layout",
                    "text",
                    ", ".join(f"{layout}: {meanings[layout]}" for layout in self.layouts),
                    "rows",
                    self.layouts,
                ),
            ),
            stored=self.stored,
            decode=self.decode,
            fast=self.fast,
            infer=self.infer,
            rules=(sound_scales("weight_scale"), self.unused_bits),
            encode=self.encode,
            encoding="canonical",
            word=self.word,
            **others,
        )


MXFP4: Final = _Kind("mxfp4", small_floats.E2M1, 2, ("rows", "blocks")).form(
    "32 four-bit floats (E2M1) share one power of two; 4.25 bits for each weight.",
    oracle="ml_dtypes 0.6.0, gfloat 0.5.2, compressed-tensors 0.20.1",
    notes=(
        "Checkpoints of compressed-tensors pack along each row, those of GPT-OSS have an axis of blocks (`*_blocks`, "
        "`*_scales`). GGUF keeps the scale first and pairs values 16 apart: ggml_mxfp4. The table claims 5.0 bits."
    ),
)
MXFP6_E3M2: Final = _Kind("mxfp6_e3m2", small_floats.E3M2, 4, ("rows", "blocks", "bytes")).form(
    "32 six-bit floats (E3M2) share one power of two; 6.25 bits for each weight.",
    oracle="ml_dtypes 0.6.0, gfloat 0.5.2",
    notes="Four codes in three bytes; torchao keeps one in each byte (`layout` bytes). The table claims 6.125 bits.",
)
MXFP6_E2M3: Final = _Kind("mxfp6_e2m3", small_floats.E2M3, 2, ("rows", "blocks", "bytes")).form(
    "32 six-bit floats (E2M3) share one power of two; 6.25 bits for each weight.",
    oracle="ml_dtypes 0.6.0, gfloat 0.5.2, compressed-tensors 0.20.1",
    notes="Four codes in three bytes; torchao keeps one in each byte (`layout` bytes).",
)
