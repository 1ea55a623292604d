"""QuIP# with the E8P codebook: two bits a weight between two Hadamard transforms over whole rows and columns."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes import hadamard
from ninfer_core.schemes.faults import report_not_finite
from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.lattice import e8p
from ninfer_core.schemes.run import CannotEncode, refuse_shape

_NAME: Final = "quip_sharp_e8p"
_SCALE: Final = 1.03  # of normal values to the codebook, as its tool divides them
_NIBBLES: Final = 4 * np.arange(8, dtype=np.uint32)


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    whole = len(shape) == 2 and all(n and n & (n - 1) == 0 for n in shape)
    if not whole or shape[0] % 16 or shape[1] % 64:
        raise refuse_shape(_NAME, shape, "[out, in], powers of two of at least 16 and 64 (R11)")
    outputs, inputs = shape
    return {"Qidxs": (outputs, inputs // 32), "SU": (inputs,), "SV": (outputs,)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    words = stored.get("Qidxs", ())
    if len(words) != 2:
        raise refuse_shape(_NAME, words, "Qidxs [out, in/32]")
    return words[0], words[1] * 32


def unpack(words: NDArray[Any], shape: Shape) -> NDArray[np.uint16]:
    """The indices, uint16[out, in/8], of Qidxs: a word covers two rows and two columns of them."""
    outputs, inputs = shape
    grid = np.ascontiguousarray(words).view(np.uint64).reshape(outputs // 16, inputs // 64, 8, 4)
    high = (grid & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    planes = (grid >> np.uint64(32)).astype(np.uint32)
    found = np.empty((outputs // 16, 8, 2, inputs // 64, 4, 2), np.uint16)  # band, a, row, block, k, column
    for entry in range(4):  # from the bottom: (r0, c0), (r1, c0), (r0, c1), (r1, c1)
        bits = planes[..., np.newaxis] >> (_NIBBLES + np.uint32(entry)) & np.uint32(1)
        sign = (bits << np.arange(8, dtype=np.uint32)).sum(axis=-1, dtype=np.uint32)
        index = (high >> np.uint32(8 * entry) & np.uint32(255)) << np.uint32(8) | sign
        found[:, :, entry & 1, :, :, entry >> 1] = index.transpose(0, 2, 1, 3)
    return found.reshape(outputs, inputs // 8)


def pack(indices: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Qidxs, int64[out, in/32], of indices uint16[out, in/8]; the inverse of `unpack`."""
    outputs, columns = indices.shape
    grid = indices.reshape(outputs // 16, 8, 2, columns // 8, 4, 2)
    words = np.zeros((outputs // 16, columns // 8, 8, 4), np.uint64)
    for entry in range(4):
        index = grid[:, :, entry & 1, :, :, entry >> 1].transpose(0, 2, 1, 3).astype(np.uint64)
        words |= (index >> np.uint64(8)) << np.uint64(8 * entry)
        for bit in range(8):
            plane = index >> np.uint64(bit) & np.uint64(1)
            words |= plane << np.uint64(32 + 4 * bit + entry)
    return words.view(np.int64).reshape(outputs, columns // 4)


def weights(parts: Parts, shape: Shape) -> Values:
    """The vectors of the codebook, before the rotations: exact."""
    return e8p.decode(unpack(parts["Qidxs"], shape)).reshape(shape)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """diag(SV) H (Wc H diag(SU)) in binary32; the scale of the tensor is folded into SV."""
    values = hadamard.transform(weights(parts, shape), shape[1], axis=1)
    values *= parts["SU"].astype(np.float32)
    values = hadamard.transform(values, shape[0], axis=0)
    values *= parts["SV"].astype(np.float32)[:, np.newaxis]
    return values


def encode(values: Values, params: Params) -> dict[str, Array]:
    """The nearest vector for each eight rotated weights, without its tool's search over the error of a layer.

    SU is all ones, and SV holds one scale: the root mean square over 1.03. Raises: CannotEncode.
    """
    outputs, inputs = values.shape
    if not np.isfinite(values).all():
        raise CannotEncode(f"{_NAME} holds finite values only")
    spread = float(np.sqrt(np.square(values.astype(np.float64)).mean()))
    scale = np.float16(spread / _SCALE)
    if not np.isfinite(scale) or (scale == 0 and spread > 0):
        raise CannotEncode(f"{_NAME}: the scale {spread / _SCALE:.3g} is none that binary16 holds")
    rotated = hadamard.transform(hadamard.transform(values, outputs, axis=0), inputs, axis=1)
    if scale:
        rotated /= np.float32(scale)
    indices = e8p.nearest(rotated.reshape(-1, e8p.LANES)).reshape(outputs, inputs // e8p.LANES)
    return {
        "Qidxs": pack(indices),
        "SU": np.ones(inputs, np.float16),
        "SV": np.full(outputs, scale, np.float16),
    }


def _finite(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    for name in ("SU", "SV"):
        report_not_finite(findings, "scale_not_finite", name, parts[name])


def _word(params: Params) -> tuple[Slice, ...]:
    names = ("r0 c0", "r1 c0", "r0 c1", "r1 c1")
    patterns = tuple(Slice(f"pattern {name}", 8) for name in names)
    return patterns + tuple(Slice(f"sign bit {bit} of {name}", 1) for bit in range(8) for name in names)


QUIP_SHARP_E8P: Final = Form(
    name=_NAME,
    kind="file",
    summary="Sixteen bits choose eight weights from the E8P lattice codebook, between Hadamard transforms of both sides.",
    axes=("out", "in"),
    parts=(
        Part("Qidxs", ("int64",), "[M, N/32]", "four indices a word: two rows of two columns"),
        Part("SU", ("float16",), "[N]", "factors of the inputs"),
        Part("SV", ("float16",), "[M]", "factors of the outputs, with the scale of the tensor"),
    ),
    parameters=(),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_finite,),
    encode=encode,
    encoding="nearest",
    oracle="the tool's own codebook and packer on a CPU; scipy for the Hadamard matrices",
    arithmetic="the codebook is exact; the order of sums in the transforms leaves 1e-5 of the largest value",
    word=_word,
)
