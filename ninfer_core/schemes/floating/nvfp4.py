"""NVFP4 of checkpoints: 16 four-bit floats share an E4M3 scale, all of them one binary32 scale.

Two tools store that second scale, one as a divisor and one as a factor: mixing them up is the classic error, so each
has a form of its own. GGUF's 64-value blocks are `ggml_nvfp4`, and the registry's NVFP4 is another thing still.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes import bits, small_floats
from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Slice, Values, stream_word
from ninfer_core.schemes.run import refuse_shape
from ninfer_core.schemes.scales import (
    binary32,
    divided,
    finite_source,
    judge,
    largest,
    sound_divisors,
    sound_scales,
    words_of,
)

BLOCK: Final = 16
_BLOCK_SCALE: Final = small_floats.E4M3FN
_LARGEST_PRODUCT: Final = np.float32(6 * 448)  # of an element and a block scale


@dataclass(frozen=True, slots=True)
class Nvfp4:
    """One tool's names and its second scale, which divides the block scales or multiplies them.

    `signed_zero` is whether the code 8 is a negative zero to the tool, as it is by R9.
    """

    name: str
    packed: str
    block_scale: str
    tensor_scale: str
    divides: bool
    signed_zero: bool

    @property
    def table(self) -> Values:
        """The sixteen elements."""
        elements = small_floats.decode(small_floats.E2M1, np.arange(16))
        return elements if self.signed_zero else elements + np.float32(0)

    def stored(self, shape: Shape, params: Params) -> Mapping[str, Shape]:
        if not shape or shape[-1] % BLOCK:
            raise refuse_shape(self.name, shape, f"a last axis in whole blocks of {BLOCK}")
        *outer, length = shape
        return {
            self.packed: (*outer, length // 2),
            self.block_scale: (*outer, length // BLOCK),
            self.tensor_scale: (1,),
        }

    def infer(self, stored: Mapping[str, Shape], params: Params) -> Shape:
        packed = stored.get(self.packed, ())
        if not packed or packed[-1] % (BLOCK // 2):
            raise refuse_shape(self.name, packed, f"{self.packed} in whole blocks of {BLOCK // 2} bytes")
        return (*packed[:-1], packed[-1] * 2)

    def scales(self, parts: Parts) -> Values:
        """The scale of each block: the two scales first (R16), flat."""
        scales = small_floats.decode(_BLOCK_SCALE, words_of(parts[self.block_scale])).reshape(-1)
        second = binary32(parts[self.tensor_scale]).reshape(())
        products: Values = scales / second if self.divides else scales * second
        return products

    def decode(self, parts: Parts, shape: Shape, params: Params) -> Values:
        """Product or quotient of the scales first, then times the element, in binary32 (R16; 5.15)."""
        codes = bits.codes_of(parts[self.packed].reshape(-1, BLOCK // 2), 4, BLOCK)
        scaled: Values = self.table[codes] * self.scales(parts)[:, None]
        return scaled.reshape(shape)

    def fast(self, parts: Parts, shape: Shape, params: Params) -> Values:
        """The same, compiled."""
        from ninfer_core.schemes.compiled import mx

        packed = parts[self.packed].reshape(-1, BLOCK // 2)
        return mx.four_bits(packed, self.scales(parts), self.table).reshape(shape)

    def encode(self, values: Values, params: Params) -> dict[str, Array]:
        """The tensor's largest magnitude meets the largest element and block scale; both kinds of code are nearest.

        Raises: CannotEncode for values that are not finite.
        """
        stored = self.stored(values.shape, params)
        blocks = finite_source(self.name, values).reshape(-1, BLOCK)
        second = self._second_scale(largest(blocks, None).reshape(()))
        top = largest(blocks, -1) / np.float32(small_floats.E2M1.largest)
        wanted = top * second if self.divides else divided(top, np.broadcast_to(second, top.shape))
        scale_words = small_floats.encode(_BLOCK_SCALE, wanted)
        parts = {self.block_scale: scale_words, self.tensor_scale: second.reshape(1)}
        scales = np.broadcast_to(self.scales(parts)[:, None], blocks.shape)
        codes = small_floats.encode(small_floats.E2M1, divided(blocks, scales))
        return {
            self.packed: bits.words_of(codes, 4).reshape(stored[self.packed]),
            self.block_scale: scale_words.reshape(stored[self.block_scale]),
            self.tensor_scale: parts[self.tensor_scale],
        }

    def _second_scale(self, top: Values) -> Values:
        """The scale of the tensor, kept above zero and finite; 1 where all values are zero."""
        limits = np.finfo(np.float32)
        if not top:
            return np.ones((), np.float32)
        if self.divides:
            return np.asarray(np.minimum(_LARGEST_PRODUCT / top, limits.max))
        return np.asarray(np.maximum(top / _LARGEST_PRODUCT, limits.smallest_subnormal))

    def block_scales_sound(self, parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
        """No block scale is NaN or negative."""
        words = words_of(parts[self.block_scale])
        judge(self.block_scale, words, small_floats.decode(_BLOCK_SCALE, words), findings)

    def form(self, summary: str, oracle: str, notes: str) -> Form:
        """The form that these names and this second scale make."""
        sound = sound_divisors if self.divides else sound_scales
        how = "divides" if self.divides else "multiplies"
        return Form(
            name=self.name,
            kind="file",
            summary=summary,
            axes=("out", "in"),
            parts=(
                Part(self.packed, ("uint8",), "[.., I/2]", "E2M1 codes, the first in the low nibble"),
                Part(self.block_scale, ("float8_e4m3fn", "uint8"), "[.., I/16]", "E4M3 scale of 16 values"),
                Part(self.tensor_scale, ("float32",), "[1]", f"{how} every block scale"),
            ),
            parameters=(),
            stored=self.stored,
            decode=self.decode,
            fast=self.fast,
            infer=self.infer,
            rules=(self.block_scales_sound, sound(self.tensor_scale)),
            encode=self.encode,
            encoding="nearest",
            oracle=oracle,
            arithmetic="exact; scales applied one after the other instead of together differ by up to 1e-6",
            word=_word,
            notes=notes,
        )


def _word(params: Params) -> tuple[Slice, ...]:
    return stream_word("value ", 4, 8)


CT: Final = Nvfp4(
    "nvfp4_ct", "weight_packed", "weight_scale", "weight_global_scale", divides=True, signed_zero=True
)
MODELOPT: Final = Nvfp4(
    "nvfp4_modelopt", "weight", "weight_scale", "weight_scale_2", divides=False, signed_zero=False
)

NVFP4_CT: Final = CT.form(
    "16 four-bit floats share an E4M3 scale; a binary32 scale of the tensor divides.",
    "compressed-tensors 0.20.1, ml_dtypes 0.6.0",
    "The catalogue's block has no second scale, so the range of its block scales is tight.",
)
NVFP4_MODELOPT: Final = MODELOPT.form(
    "16 four-bit floats share an E4M3 scale; a binary32 scale of the tensor multiplies.",
    "nvidia-modelopt 0.47.0, ml_dtypes 0.6.0",
    "`weight_scale_2` is the reciprocal in meaning of `weight_global_scale`. The tool reads the code of negative zero "
    "as zero without a sign, and so does this form.",
)
