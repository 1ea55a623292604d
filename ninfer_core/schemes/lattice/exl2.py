"""EXL2: groups of inputs with 2 to 8 bits each, the widest first, and scales of four bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes import bits
from ninfer_core.schemes.faults import report, report_not_finite
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
from ninfer_core.schemes.lattice.order import check_permutation
from ninfer_core.schemes.run import CannotEncode, Refusal, refuse_parameter, refuse_shape

_NAME: Final = "exl2"
_WIDTHS: Final = (2, 3, 4, 5, 6, 8)
_OUTPUTS: Final = 8  # scales of one word

Halves = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class _Group:
    """Some inputs of one width: their rows of q_weight, and their places in the stored order."""

    bits: int
    rows: range
    inputs: range


def _stated(params: Params) -> tuple[tuple[int, int], ...]:
    """The parameter `groups` as pairs of bits and inputs. Raises: SchemeRefused."""
    flat = params["groups"]
    pairs = tuple(zip(flat[::2], flat[1::2], strict=False))
    if len(flat) % 2 or not all(width in _WIDTHS and n > 0 and n * width % 32 == 0 for width, n in pairs):
        expected = "pairs of bits (2, 3, 4, 5, 6 or 8) and inputs that fill whole words of 32 bits"
        raise refuse_parameter(_NAME, "groups", expected, list(flat))
    return pairs


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2 or shape[1] % _OUTPUTS:
        raise refuse_shape(_NAME, shape, f"[in, out] with a multiple of {_OUTPUTS} outputs")
    groups = _stated(params)
    stored: dict[str, Shape] = {"q_invperm": (shape[0],)}
    if not groups:
        return stored  # q_groups says the rest
    if sum(n for _, n in groups) != shape[0]:
        raise refuse_parameter(_NAME, "groups", f"{shape[0]} inputs in all", list(params["groups"]))
    rows = sum(width * n // 32 for width, n in groups)
    return stored | {
        "q_weight": (rows, shape[1]),
        "q_groups": (2 * len(groups),),
        "q_scale": (len(groups), shape[1] // _OUTPUTS),
        "q_scale_max": (len(groups),),
    }


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    weight, order = stored.get("q_weight", ()), stored.get("q_invperm", ())
    if len(weight) != 2 or len(order) != 1:
        raise refuse_shape(_NAME, weight, "q_weight [rows, out] and q_invperm [in]")
    return order[0], weight[1]


def _read_groups(parts: Parts, shape: Shape, refusal: Refusal) -> list[_Group]:
    """The table of groups, where it fits the other parts; otherwise findings."""
    table, weight = parts["q_groups"], parts["q_weight"]
    if table.ndim != 1 or table.size % 2:
        refusal.add("part_shape", "q_groups holds pairs", "[2*G]", list(table.shape), part="q_groups")
        return []
    count = table.size // 2
    expected = {"q_scale": (count, shape[1] // _OUTPUTS), "q_scale_max": (count,)}
    for name, wanted in expected.items():
        if parts[name].shape != wanted:
            found = list(parts[name].shape)
            refusal.add("part_shape", f"{name} does not fit q_groups", list(wanted), found, part=name)
    if weight.ndim != 2 or weight.shape[1] != shape[1]:
        found = list(weight.shape)
        refusal.add(
            "part_shape", "q_weight has one column an output", ["rows", shape[1]], found, part="q_weight"
        )
    if refusal.findings.items:
        return []
    words = [int(word) & 0xFFFF for word in table]
    starts = [*words[1::2], weight.shape[0]]
    groups: list[_Group] = []
    used = 0
    for index, width in enumerate(words[::2]):
        first, last = starts[index], starts[index + 1]
        if width not in _WIDTHS:
            fault = f"group {index} has {width} bits"
        elif last <= first or (index == 0 and first != 0):
            fault = f"group {index} begins at row {first} and ends at {last}"
        elif (last - first) * 32 % width:
            fault = f"the {last - first} rows of group {index} hold no whole number of {width}-bit codes"
        else:
            inputs = (last - first) * 32 // width
            groups.append(_Group(width, range(first, last), range(used, used + inputs)))
            used += inputs
            continue
        refusal.add(
            "groups_malformed", fault, "rising rows of whole codes", fault, part="q_groups", index=index
        )
        return []
    if used != shape[0]:
        message = f"the groups hold {used} inputs of {shape[0]}"
        refusal.add("groups_malformed", message, shape[0], used, part="q_groups", index=count)
    return groups


def _in_order(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    """What the table and the permutation may hold."""
    groups = _read_groups(parts, shape, Refusal(_NAME, findings))
    check_permutation("q_invperm", parts["q_invperm"], findings)
    widths = np.array([group.bits for group in groups], np.int64)
    wider = np.zeros(widths.shape, np.bool_)
    wider[1:] = widths[1:] > widths[:-1]
    message = "has a group that is wider than the one before, which kernels read in another order"
    report(findings, "groups_malformed", "q_groups", wider, widths, message, "the widest first")


def _finite(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    report_not_finite(findings, "scale_not_finite", "q_scale_max", parts["q_scale_max"])


def _squares() -> Halves:
    return np.square(np.arange(1, 17, dtype=np.float16))


def _scales(nibbles: NDArray[np.uint8], most: np.float16) -> Halves:
    """float16((t + 1)^2) x float16(max / 256), rounded to binary16 after each product (5.20)."""
    return np.asarray(_squares()[nibbles] * (most * np.float16(1 / 256)), np.float16)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """(q - 2^(bits-1)) s in binary16, rows back in their original order. Raises: SchemeRefused."""
    refusal = Refusal(_NAME)
    groups = _read_groups(parts, shape, refusal)
    check_permutation("q_invperm", parts["q_invperm"], refusal.findings)
    refusal.settle()
    nibbles = bits.codes_of(parts["q_scale"], 4, shape[1])
    sorted_rows = np.empty(shape, np.float16)
    for index, group in enumerate(groups):
        words = parts["q_weight"][group.rows.start : group.rows.stop]
        codes = bits.codes_of(words, group.bits, len(group.inputs), axis=0)
        centred = codes.astype(np.float16) - np.float16(1 << (group.bits - 1))
        scale = _scales(nibbles[index], parts["q_scale_max"][index])
        np.multiply(centred, scale, out=sorted_rows[group.inputs.start : group.inputs.stop])
    return sorted_rows[parts["q_invperm"]].astype(np.float32)


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Plain rounding without calibration, in the order of the inputs; the parameter `groups` says the widths.

    A column's scale is the smallest of the sixteen that reaches its largest magnitude. Raises: CannotEncode.
    """
    groups = _stated(params)
    if not groups and values.shape[0]:
        raise CannotEncode(f"{_NAME} needs the parameter groups to encode: pairs of bits and inputs")
    if not np.isfinite(values).all():
        raise CannotEncode(f"{_NAME} holds finite values only")
    outputs = values.shape[1]
    weights, nibbles, most, table = [], [], [], []
    first_input = first_row = 0
    for width, inputs in groups:
        block = values[first_input : first_input + inputs]
        half = 1 << (width - 1)
        wanted = np.abs(block).max(axis=0, initial=0) / np.float32(half - 1)
        largest = np.float16(wanted.max(initial=0))
        if not np.isfinite(largest):
            raise CannotEncode(f"{_NAME}: a scale of {wanted.max():.3g} is beyond binary16")
        offered = _scales(np.arange(16, dtype=np.uint8), largest).astype(np.float32)
        level = np.minimum(np.searchsorted(offered, wanted), 15).astype(np.uint8)
        scale = offered[level]
        codes = np.rint(block / np.where(scale == 0, np.float32(1), scale)) + np.float32(half)
        clipped = np.clip(codes, 0, 2 * half - 1).astype(np.uint8)
        weights.append(bits.words_of(clipped, width, np.int32, axis=0))
        nibbles.append(level)
        most.append(largest)
        table += [width, first_row]
        first_input += inputs
        first_row += width * inputs // 32
    if first_row > 0xFFFF:
        raise CannotEncode(f"{_NAME}: {first_row} rows of words are more than q_groups can name")
    held = np.array(nibbles, np.uint8).reshape(len(groups), outputs)
    return {
        "q_weight": np.concatenate([np.zeros((0, outputs), np.int32), *weights]),
        "q_groups": np.array(table, np.uint16).view(np.int16),
        "q_scale": bits.words_of(held, 4, np.int32),
        "q_scale_max": np.array(most, np.float16),
        "q_invperm": np.arange(values.shape[0], dtype=np.int32),
    }


def _word(params: Params) -> tuple[Slice, ...]:
    """A word of the widest group; codes of other widths than 2, 4 and 8 straddle words."""
    groups = _stated(params)
    width = groups[0][0] if groups else 0
    if width not in (2, 4, 8):
        return (Slice(f"codes of {width} bits" if width else "codes of its group's width", 32),)
    return stream_word("code ", width, 32)


EXL2: Final = Form(
    name=_NAME,
    kind="file",
    summary="Groups of inputs with 2 to 8 bits each, four-bit scales by output, inputs sorted by how much they matter.",
    axes=("in", "out"),
    parts=(
        Part(
            "q_weight", ("int32",), "[rows, N]", "codes down each column, one low-first stream for each group"
        ),
        Part("q_groups", ("int16",), "[2*G]", "bits and first row of each group"),
        Part("q_scale", ("int32",), "[G, N/8]", "eight square roots of scales a word, less one"),
        Part("q_scale_max", ("float16",), "[G]", "256 times the unit of each group's scales"),
        Part("q_invperm", ("int32",), "[K]", "the stored row of each input"),
    ),
    parameters=(
        Parameter("groups", "integers", "bits and inputs of each group; empty: as q_groups says", ()),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_in_order, _finite),
    encode=encode,
    encoding="plain",
    oracle="exllamav2 0.3.2, its packing kernels run on a CPU",
    arithmetic="exact: binary16 products as the tool rounds them",
    word=_word,
)
