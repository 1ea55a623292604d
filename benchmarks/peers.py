"""Encoders that ours are measured beside: plain numpy, torch, the GGUF package's numpy and GGML's C reference.

Whichever is not installed is None, and its rows say so.
"""

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat

Peer = Callable[[str, NDArray[np.float32]], object]
"""Quantizes binary32 values as a type of GGUF, Q8_0 or Q4_0."""

_C_TYPES = {"Q4_0": 2, "Q8_0": 8}


def encode_numpy(
    fmt: GroupedFormat, source: NDArray[np.uint16]
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """The canonical encoder with whole-array numpy operations; a byte per code, nibbles packed for Q4."""
    x = (source.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(-1, fmt.group)
    raw = np.abs(x).max(axis=1) / np.float32(fmt.qmax)
    scale = raw.astype(np.float16)
    scale[(scale == 0) & (raw > 0)] = np.float16(2.0**-24)
    inverse = np.float32(1) / np.where(scale == 0, np.float32(1), scale.astype(np.float32))
    codes = np.clip(np.rint(x * inverse[:, None]), fmt.qmin, fmt.qmax).astype(np.int8).view(np.uint8)
    if fmt.code_bits < 8:
        low = codes & 15
        codes = low[:, 0::2] | low[:, 1::2] << 4
    return codes, scale.view(np.uint16)


def torch_encoder() -> Callable[[GroupedFormat, NDArray[np.uint16]], object] | None:
    """The usual torch CPU encoder, or None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(2)

    def encode(fmt: GroupedFormat, source: NDArray[np.uint16]) -> object:
        x = torch.from_numpy(source.view(np.int16)).view(torch.bfloat16).float().view(-1, fmt.group)
        raw = x.abs().amax(dim=1, keepdim=True) / fmt.qmax
        scale = raw.half()
        scale = torch.where((scale == 0) & (raw > 0), torch.full_like(scale, 2.0**-24), scale)
        inverse = torch.where(scale == 0, torch.zeros_like(raw), 1.0 / scale.float())
        codes = torch.clamp(torch.round(x * inverse), fmt.qmin, fmt.qmax).to(torch.int8)
        if fmt.code_bits < 8:
            low = codes & 15
            codes = low[:, 0::2] | (low[:, 1::2] << 4)
        return codes, scale

    return encode


def gguf_quantizer() -> Peer | None:
    """The numpy quantizer of the GGUF package, or None where it is not installed."""
    if importlib.util.find_spec("gguf") is None:
        return None
    from gguf import GGMLQuantizationType, quants

    return lambda name, values: quants.quantize(values.reshape(1, -1), GGMLQuantizationType[name])


def c_quantizer() -> Peer | None:
    """GGML's reference in C, from the library that the package ctransformers carries, or None where there is none."""
    spec = importlib.util.find_spec("ctransformers")
    if spec is None or not spec.submodule_search_locations:
        return None
    library = Path(spec.submodule_search_locations[0]) / "lib" / "avx2" / "libctransformers.so"
    try:
        chunk = ctypes.CDLL(str(library)).ggml_quantize_chunk
    except (OSError, AttributeError):
        return None
    chunk.restype = ctypes.c_size_t
    counts = np.zeros(16, np.int64)
    out = np.zeros(0, np.uint8)

    def quantize(name: str, values: NDArray[np.float32]) -> object:
        nonlocal out
        if out.size < 2 * values.size:
            out = np.zeros(2 * values.size, np.uint8)
        places = (ctypes.c_void_p(array.ctypes.data) for array in (values, out))
        numbers = (ctypes.c_int(0), ctypes.c_int(values.size))
        return chunk(ctypes.c_int(_C_TYPES[name]), *places, *numbers, ctypes.c_void_p(counts.ctypes.data))

    return quantize
