"""EXL3: a trellis code of 1 to 8 bits between two Hadamard transforms of 128."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes import hadamard
from ninfer_core.schemes.faults import report_not_finite, word_of
from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Values
from ninfer_core.schemes.lattice import trellis
from ninfer_core.schemes.run import Refusal, refuse_shape

_NAME: Final = "exl3"
_BLOCK: Final = 128  # of the Hadamard transforms
_TILE: Final = 16


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2 or shape[0] % _BLOCK or shape[1] % _BLOCK:
        raise refuse_shape(_NAME, shape, f"[in, out], multiples of {_BLOCK}")
    inputs, outputs = shape
    return {
        "trellis": (inputs // _TILE, outputs // _TILE, _TILE * params["bits"]),
        "suh": (inputs,),
        "svh": (outputs,),
        "su": (inputs // 16,),
        "sv": (outputs // 16,),
        "mcg": (),
        "mul1": (),
    }


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    tiles = stored.get("trellis", ())
    if len(tiles) != 3:
        raise refuse_shape(_NAME, tiles, "trellis [in/16, out/16, 16 * bits]")
    return tiles[0] * _TILE, tiles[1] * _TILE


def _sides(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    """Each side has one vector, as factors or as sign bits, and at most one codebook is marked."""
    refusal = Refusal(_NAME, findings)
    for factors, signs in (("suh", "su"), ("svh", "sv")):
        if factors in parts and signs in parts:
            message = f"{factors} and {signs} state the same side twice"
            refusal.add("redundant_differs", message, "one of them", "both", part=signs)
        elif factors not in parts and signs not in parts:
            message = f"{factors} is missing, and so are its sign bits {signs}"
            refusal.add("part_missing", message, f"{factors} or {signs}", "absent", part=factors)
    if "mcg" in parts and "mul1" in parts:
        message = "mcg and mul1 mark two codebooks"
        refusal.add("redundant_differs", message, "at most one", "both", part="mul1")


def _marked(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    """A marker holds the multiplier of its codebook; decoders look at its presence alone."""
    for name, multiplier in trellis.MARKERS.items():
        if name in parts and word_of(parts[name]) != multiplier:
            word = word_of(parts[name])
            findings.add(
                "scheme.table_differs",
                f"{name} holds another multiplier than that of its codebook",
                where={"part": name, "index": 0},
                expected=f"{multiplier:#010x}",
                found=f"{word:#010x}",
            )


def _finite(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    for name in ("suh", "svh"):
        if name in parts:
            report_not_finite(findings, "scale_not_finite", name, parts[name])


def _codebook(parts: Parts) -> trellis.Codebook:
    return "mcg" if "mcg" in parts else "mul1" if "mul1" in parts else "3inst"


def _side(parts: Parts, factors: str, signs: str) -> NDArray[np.float32]:
    """The vector of one side: factors, or -1 for each bit that is set, low bit first."""
    if factors in parts:
        return parts[factors].astype(np.float32)
    words: Array = np.ascontiguousarray(parts[signs]).view(np.uint16)
    bits = words[:, np.newaxis] >> np.arange(16, dtype=np.uint16) & np.uint16(1)
    return np.where(bits.ravel(), np.float32(-1), np.float32(1))


def inner(parts: Parts, shape: Shape, params: Params) -> Values:
    """The numbers of the trellis before its rotations: exact, where the tool's kernels round them to binary16."""
    tiles = np.ascontiguousarray(parts["trellis"])
    table = trellis.values(_codebook(parts))
    where = trellis.places()
    found = np.empty((shape[0] // _TILE, _TILE, shape[1] // _TILE, _TILE), np.float32)
    for row, strip in enumerate(tiles):
        placed = np.empty((strip.shape[0], trellis.SYMBOLS), np.float32)
        placed[:, where] = table[trellis.states(strip, params["bits"])]
        found[row] = placed.reshape(-1, _TILE, _TILE).transpose(1, 0, 2)
    return found.reshape(shape)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """diag(suh) H inner H diag(svh), with Hadamard blocks of 128. Raises: SchemeRefused for a side without vector."""
    refusal = Refusal(_NAME)
    _sides(parts, shape, params, refusal.findings)
    refusal.settle()
    values = hadamard.transform(inner(parts, shape, params), _BLOCK, axis=0)
    values *= _side(parts, "suh", "su")[:, np.newaxis]
    values = hadamard.transform(values, _BLOCK, axis=1)
    values *= _side(parts, "svh", "sv")
    return values


EXL3: Final = Form(
    name=_NAME,
    kind="file",
    summary="A trellis code: each weight is a function of sixteen bits of a stream, between two Hadamard transforms.",
    axes=("in", "out"),
    parts=(
        Part("trellis", ("int16", "uint16"), "[K/16, N/16, 16*bits]", "the stream of each tile of 16 x 16"),
        Part("suh", ("float16",), "[K]", "factors of the inputs", optional=True),
        Part("svh", ("float16",), "[N]", "factors of the outputs", optional=True),
        Part("su", ("int16", "uint16"), "[K/16]", "older files: signs of the inputs, a set bit is -1", True),
        Part("sv", ("int16", "uint16"), "[N/16]", "older files: signs of the outputs, a set bit is -1", True),
        Part("mcg", ("int32", "uint32"), "[]", "marks the second codebook", optional=True),
        Part("mul1", ("int32", "uint32"), "[]", "marks the third codebook", optional=True),
    ),
    parameters=(Parameter("bits", "integer", "bits of one weight", choices=(1, 2, 3, 4, 5, 6, 7, 8)),),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_sides, _marked, _finite),
    oracle="gptqmodel 7.7.0, its decoder without a GPU",
    arithmetic="the trellis is exact; the order of sums in the transforms leaves 1e-5 of the largest value",
    notes="Its tool finds states by a Viterbi search, so there is no encoder here. Half-integer bits are not covered.",
)
