"""Stored arrays of one weight in every form that is measured, and who else decodes them.

Scales are numbers: infinities and NaN take ways of their own. Arrays are drawn from a generator of fixed seed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks import scheme_peers as peers
from ninfer_core.schemes.ggml.block import Block
from ninfer_core.schemes.ggml.forms import form_name
from ninfer_core.schemes.ggml.types import BLOCKS
from ninfer_core.schemes.integer.tables import NF4_TABLE

BUFFERS: Final = 2
GROUP: Final = 128

Parts = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Work:
    """A form with stored arrays of one tensor and decoders of others by their names."""

    form: str
    note: str
    shape: tuple[int, int]
    parts: tuple[Parts, ...]  # one for each buffer
    params: Mapping[str, Any]
    others: Mapping[str, peers.Decoder | None]
    proofs: Mapping[str, peers.Decoder | None] = field(
        default_factory=dict
    )  # where what is timed answers no values


@dataclass(frozen=True)
class Maker:
    """Draws works of a weight of so many outputs and inputs, for peers of so many threads."""

    outputs: int
    inputs: int
    threads: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.outputs, self.inputs

    def works(self, only: str) -> Iterator[Work]:
        """Every form whose name holds `only`."""
        for block in BLOCKS:
            if not block.direct and block.id is not None and only in form_name(block):
                yield self.blocks(block)
        makers = {
            "bnb_nf4": (self.nf4, self.nested),
            "mxfp4": (self.mxfp4, self.experts),
            "nvfp4_ct": (self.nvfp4,),
            "gptq": (self.gptq,),
            "awq": (self.awq,),
            "ct_pack_quantized": (self.packed,),
            "matmulnbits": (lambda: self.operator(4), lambda: self.operator(8), lambda: self.operator(2)),
        }
        for name, ways in makers.items():
            if only in name:
                yield from (way() for way in ways)

    def blocks(self, block: Block) -> Work:
        buffers = []
        for seed in range(BUFFERS):
            drawn = np.random.default_rng(seed)
            count = self.outputs * self.inputs // block.values
            records = block.records(drawn.integers(0, 256, count * block.bytes, np.uint8))
            for name in block.scales:
                records[name] = (0.01 + 0.01 * drawn.random(count)).astype(np.float16).view(np.uint16)
            if block.name == "IQ1_M":  # whose scale is the top nibbles of four words
                records["scales"] = records["scales"] & 0x0FFF | np.array([0, 0, 0, 0x2000], np.uint16)
            buffers.append({"payload": records.view(np.uint8)})
        number = block.id if block.id is not None else -1
        others = {
            "gguf, numpy": peers.gguf(block.name, block.bytes),
            "ggml, C": peers.ggml(number, self.threads),
        }
        return Work(form_name(block), "", self.shape, tuple(buffers), {}, others)

    def _four_bits(self) -> Iterator[tuple[np.random.Generator, NDArray[np.uint8]]]:
        for seed in range(BUFFERS):
            drawn = np.random.default_rng(seed)
            yield drawn, drawn.integers(0, 256, (self.outputs, self.inputs // 2), np.uint8)

    def nf4(self) -> Work:
        count = self.outputs * self.inputs
        buffers: tuple[Parts, ...] = tuple(
            {
                "payload": codes.reshape(-1),
                "absmax": drawn.random(count // 64).astype(np.float32),
                "code": NF4_TABLE,
            }
            for drawn, codes in self._four_bits()
        )
        return Work(
            "bnb_nf4", "", self.shape, buffers, {}, {"bitsandbytes": peers.bitsandbytes("nf4", 64, count)}
        )

    def nested(self) -> Work:
        count = self.outputs * self.inputs
        buffers: tuple[Parts, ...] = tuple(
            {
                "payload": codes.reshape(-1),
                "absmax_u8": drawn.integers(0, 256, count // 64, np.uint8),
                "nested_absmax": drawn.random(count // 64 // 256).astype(np.float32),
                "nested_code": np.linspace(-1, 1, 256, dtype=np.float32),
                "offset": np.array([2.5], np.float32),
                "code": NF4_TABLE,
            }
            for drawn, codes in self._four_bits()
        )
        others = {"bitsandbytes": peers.bitsandbytes("nf4", 64, count)}
        return Work("bnb_nf4", "nested", self.shape, buffers, {}, others)

    def mxfp4(self) -> Work:
        buffers: tuple[Parts, ...] = tuple(
            {
                "weight_packed": codes,
                "weight_scale": drawn.integers(100, 130, (self.outputs, self.inputs // 32), np.uint8),
            }
            for drawn, codes in self._four_bits()
        )
        others = {"compressed-tensors": peers.compressed_floats(*self.shape, 32)}
        return Work("mxfp4", "", self.shape, buffers, {}, others)

    def experts(self) -> Work:
        rows = self.mxfp4().parts
        buffers: tuple[Parts, ...] = tuple(
            {**parts, "weight_packed": parts["weight_packed"].reshape(self.outputs, -1, 16)} for parts in rows
        )
        params = {"layout": "blocks"}
        return Work("mxfp4", "blocks", self.shape, buffers, params, {"transformers": peers.transformers()})

    def nvfp4(self) -> Work:
        buffers: tuple[Parts, ...] = tuple(
            {
                "weight_packed": codes,
                "weight_scale": drawn.integers(1, 126, (self.outputs, self.inputs // 16), np.uint8),
                "weight_global_scale": np.array([37.5], np.float32),
            }
            for drawn, codes in self._four_bits()
        )
        others = {"compressed-tensors": peers.compressed_floats(*self.shape, 16)}
        return Work("nvfp4_ct", "", self.shape, buffers, {}, others)

    def _words(self, drawn: np.random.Generator, *counts: int) -> NDArray[np.int32]:
        return drawn.integers(-(1 << 31), 1 << 31, counts, np.int32)

    def _halves(self, drawn: np.random.Generator, *counts: int) -> NDArray[np.float16]:
        return (0.01 + 0.01 * drawn.random(counts)).astype(np.float16)

    def gptq(self) -> Work:
        buffers: list[Parts] = []
        for seed in range(BUFFERS):
            drawn = np.random.default_rng(seed)
            buffers.append(
                {
                    "qweight": self._words(drawn, self.inputs // 8, self.outputs),
                    "qzeros": self._words(drawn, self.inputs // GROUP, self.outputs // 8),
                    "scales": self._halves(drawn, self.inputs // GROUP, self.outputs),
                    "g_idx": (np.arange(self.inputs) // GROUP).astype(np.int32),
                }
            )
        sizes = self.inputs, self.outputs, GROUP
        others, proofs = {"auto-gptq": peers.auto_gptq(*sizes)}, {"auto-gptq": peers.auto_gptq_weight(*sizes)}
        params = {"bits": 4, "group_size": GROUP}
        return Work("gptq", "", (self.inputs, self.outputs), tuple(buffers), params, others, proofs)

    def awq(self) -> Work:
        buffers: list[Parts] = []
        for seed in range(BUFFERS):
            drawn = np.random.default_rng(seed)
            buffers.append(
                {
                    "qweight": self._words(drawn, self.inputs, self.outputs // 8),
                    "qzeros": self._words(drawn, self.inputs // GROUP, self.outputs // 8),
                    "scales": self._halves(drawn, self.inputs // GROUP, self.outputs),
                }
            )
        shape, others = (self.inputs, self.outputs), {"autoawq": peers.autoawq(GROUP)}
        return Work("awq", "", shape, tuple(buffers), {"group_size": GROUP}, others)

    def packed(self) -> Work:
        buffers: list[Parts] = []
        for seed in range(BUFFERS):
            drawn = np.random.default_rng(seed)
            buffers.append(
                {
                    "weight_packed": self._words(drawn, self.outputs, self.inputs // 8),
                    "weight_scale": drawn.random((self.outputs, self.inputs // GROUP)).astype(np.float32),
                    "weight_zero_point": self._words(drawn, self.outputs // 8, self.inputs // GROUP),
                }
            )
        others = {"compressed-tensors": peers.compressed_integers(4, GROUP, *self.shape)}
        params = {"bits": 4, "group_size": GROUP, "symmetric": False}
        return Work("ct_pack_quantized", "", self.shape, tuple(buffers), params, others)

    def operator(self, bits: int) -> Work:
        drawn = np.random.default_rng(bits)
        blocks = self.inputs // 32
        parts = {
            "B": drawn.integers(0, 256, (self.outputs, blocks, 4 * bits), np.uint8),
            "scales": drawn.random((self.outputs, blocks)).astype(np.float32),
            "zero_points": drawn.integers(0, 256, (self.outputs, blocks * bits // 8), np.uint8),
        }
        theirs = peers.onnxruntime(parts, *self.shape, 32, bits, self.threads)
        params = {"bits": bits, "block_size": 32}
        others = {"onnxruntime": theirs}
        # onnxruntime holds its arrays in the model: the same ones for every turn of both.
        return Work("matmulnbits", f"{bits} bits", self.shape, (parts,) * BUFFERS, params, others)
