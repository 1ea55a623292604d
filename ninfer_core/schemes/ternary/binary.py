"""Sign bits with a factor for each output channel, as XNOR-Net scales them."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes import bits
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Slice, Values, stream_word
from ninfer_core.schemes.run import refuse_shape
from ninfer_core.schemes.scales import finite_source, sound_scales

_NAME: Final = "binary_xnor"


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2:
        raise refuse_shape(_NAME, shape, "[out, in]")
    return {"payload": (shape[0], -(-shape[1] // 8)), "alpha": (shape[0],)}


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Alpha of the channel where the bit is set, minus alpha where it is not (5.9)."""
    signs = bits.codes_of(parts["payload"], 1, shape[1])
    alpha = parts["alpha"][:, None]
    return np.where(signs != 0, alpha, -alpha)


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Alpha is the mean magnitude of the channel in binary32; a bit is set for zero and above.

    Raises: CannotEncode for values that are not finite.
    """
    magnitudes = np.ascontiguousarray(np.abs(finite_source(_NAME, values)))
    alpha = np.zeros(values.shape[0], np.float32)
    if values.shape[1]:
        np.mean(magnitudes, axis=1, dtype=np.float32, out=alpha)
        beyond = np.isinf(alpha)  # the sum left binary32; the mean does not
        alpha[beyond] = magnitudes[beyond].mean(axis=1, dtype=np.float64)
    return {"payload": bits.words_of((values >= 0).astype(np.uint8), 1), "alpha": alpha}


def _padding(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    payload = parts["payload"]
    spare = np.zeros(payload.shape, np.bool_)
    behind = bits.spare_bytes(payload, 1, shape[1])
    if behind.shape[-1]:
        spare[:, -behind.shape[-1] :] = behind != 0
    report(findings, "padding_nonzero", "payload", spare, payload, "holds bits behind a row", "zero bits")


def _word(params: Params) -> tuple[Slice, ...]:
    return stream_word("sign of value ", 1, 8)


BINARY_XNOR: Final = Form(
    name=_NAME,
    kind="file",
    summary="One bit for each weight, set for plus, and the mean magnitude of each output channel.",
    axes=("out", "in"),
    parts=(
        Part("payload", ("uint8",), "[O, ceil(I/8)]", "sign bits, low bit first, each row padded to a byte"),
        Part("alpha", ("float32",), "[O]", "the magnitude of each channel"),
    ),
    parameters=(),
    stored=_stored,
    decode=decode,
    rules=(_padding, sound_scales("alpha")),
    encode=encode,
    encoding="canonical",
    oracle="the definition of XNOR-Net",
    word=_word,
    notes="The catalogue has a table line and no structure. GGUF's Q1_0 has a scale for each 128 weights: ggml_q1_0.",
)
