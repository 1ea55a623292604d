"""Makes the vectors that the package ships out of those in this folder; `python -m tests.vectors.make_packaged`.

Deterministic: a test holds every shipped file to what this makes. What is not copied from the handed vectors comes
from the integer oracles; `ninfer_core/selfcheck/vectors/ORIGIN.md` says which is which.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ninfer_core.containers.directory import TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.encoders import PROFILES
from ninfer_core.encoders.known_answers import rows as fp8_rows
from ninfer_core.encoders.maxabs_bf16s import ScaleUnderflow, encode_row
from ninfer_core.encoders.maxabs_f16 import SourceNotFinite, raw_scale
from ninfer_core.findings import Findings
from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, QUANTIZED, GroupedFormat, NumericFormat
from ninfer_core.io import read
from ninfer_core.layouts import canonical_layout, row_split
from ninfer_core.layouts.block_scale import pack_codes, swizzle
from ninfer_core.opening import open_path
from ninfer_core.reconstruct import reconstruct_grouped, reconstruct_nvfp4, reconstruct_row
from ninfer_core.selfcheck.vectors import VERSION
from ninfer_core.words import BFLOAT16, BINARY32, finite_value, is_finite, round_to, sign_of
from tests.vectors.load import HERE, EncodeCase, encode_cases, matrix_cases

TARGET = Path(__file__).parents[2] / "ninfer_core" / "selfcheck" / "vectors"
Entry = dict[str, Any]

# A mutation of `golden/invalid` begins with one of these; what a checker has to say of it.
FAULTS = {
    "fp8_zero_scale": "values.zero_row_scale_nonzero_code",
    "fp8_scale": "values.row_scale_invalid",
    "fp8_code": "values.fp8_code_invalid",
    "split_fp8_code": "values.fp8_code_invalid",
    "nvfp4_scale": "values.block_scale_invalid",
    "split_nvfp4_scale": "values.block_scale_invalid",
    "nvfp4_divisor": "values.divisor_invalid",
    "split_nvfp4_divisor": "values.divisor_invalid",
    "zero_scale_nonzero_code": "values.zero_scale_nonzero_code",
    "scale_": "values.scale_invalid",
    "w8_code_minus_128": "values.code_out_of_range",
    "padding_lane": "layout.padding_nonzero",
    "physical_group": "layout.padding_nonzero",
    "plane_gap": "layout.gap_nonzero",
}
CONTROLS = (
    "control_nvfp4",
    "control_fp8",
    "control_scale",
    "control_positive",
    "control_zero",
    "control_code",
)


def documents() -> dict[str, bytes]:
    """Every shipped JSON file by name, the manifest last."""
    made: dict[str, bytes] = {}
    for kind, make in (("encode", _encode), ("reconstruct", _reconstruct), ("check", _check)):
        for fmt in QUANTIZED:
            if entries := list(make(fmt)):
                made[f"{kind}.{fmt.name}.json"] = _document(kind, fmt, entries)
    files = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted(made.items())
    ]
    manifest = {
        "schema": "ninfer-gate/vectors/1",
        "version": VERSION,
        "specification": SPECIFICATION,
        "files": files,
    }
    return made | {"manifest.json": (json.dumps(manifest, indent=1) + "\n").encode()}


SPECIFICATION = "the nine persistent numeric tensor formats of .ninfer artifacts and their layouts"


def _document(kind: str, fmt: NumericFormat, entries: list[Entry]) -> bytes:
    """One case a line, so that a change is seen case by case."""
    head = {
        "schema": f"ninfer-gate/vectors/{kind}/1",
        "kind": kind,
        "format": fmt.name,
        "layout": canonical_layout(fmt).name,
        "profile": next((one.name for one in PROFILES if fmt in one.formats), None)
        if kind == "encode"
        else None,
    }
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    return (json.dumps(head, indent=1)[:-2] + ',\n "cases": [\n' + lines + "\n ]\n}\n").encode()


def _encode(fmt: NumericFormat) -> Iterator[Entry]:
    if isinstance(fmt, GroupedFormat):
        yield from _groups(fmt)
        for case in matrix_cases(fmt):
            why = [[0, f"matrix {case.key}: {case.dtype} words, tails included"]]
            payload = np.frombuffer(case.payload, np.uint8)
            yield _encoded(
                f"matrix.{case.key}", case.dtype, case.source, case.codes, case.scales, payload, why
            )
    elif fmt is FP8_E4M3FN_ROW_BF16S:
        yield from _fp8_rows()


def _groups(fmt: GroupedFormat) -> Iterator[Entry]:
    """The stored groups as matrices of one group a row, one matrix for each number of lanes; refusals one by one."""
    by_lanes: dict[int, list[EncodeCase]] = {}
    for case in encode_cases(fmt):
        if case.scale is not None:
            by_lanes.setdefault(len(case.words), []).append(case)
    for lanes, group in sorted(by_lanes.items()):
        source = np.array([case.words for case in group], np.uint32)
        codes = np.array([case.codes for case in group], np.int8)
        scales = np.array([[case.scale] for case in group], np.uint16)
        why: list[list[Any]] = []
        for row, case in enumerate(group):
            if not why or why[-1][1] != case.category:
                why.append([row, case.category])
        counts = (sum(case.rescued for case in group), sum(case.clamped for case in group))
        yield _encoded(
            f"groups.{lanes}", "F32", source, codes, scales, _grouped(fmt, codes, scales), why, counts
        )
    for number, case in enumerate(one for one in encode_cases(fmt) if one.scale is None):
        lane = next((at for at, word in enumerate(case.words) if not is_finite(BINARY32, word)), None)
        if lane is None:
            word = raw_scale(fmt, max(one & 0x7FFFFFFF for one in case.words))
            refused = _refused("scale_overflow", None, word)
        else:
            refused = _refused("source_not_finite", lane, case.words[lane])
        yield _refusal(f"refuse.{number}", case.words, refused, case.category)


def _fp8_rows() -> Iterator[Entry]:
    """Each row of the encoder's known answers as a matrix of its own, rows repeated at once where they are legal."""
    for number, words in enumerate(fp8_rows()):
        why = f"known answer {number}"
        try:
            row = encode_row(words)
        except SourceNotFinite as error:
            yield _refusal(f"rows.{number}", words, _refused(error.code, error.lane, error.word), why)
        except ScaleUnderflow as error:
            yield _refusal(f"rows.{number}", words, _refused(error.code, None, error.raw_scale_word), why)
        else:
            source = np.array([words], np.uint32)
            codes, scales = np.array([row.codes], np.uint8), np.array([[row.scale]], np.uint16)
            payload = _rows(codes, scales[:, 0])
            counts = (0, row.clamped)
            yield _encoded(f"rows.{number}", "F32", source, codes, scales, payload, [[0, why]], counts)


def _encoded(
    name: str,
    dtype: str,
    source: Any,
    codes: Any,
    scales: Any,
    payload: Any,
    why: Any,
    counts: Any = (None, None),
) -> Entry:
    arrays = {"source": source, "codes": codes, "scales": scales, "payload": payload}
    return {
        "id": name,
        "dtype": dtype,
        "shape": list(source.shape),
        **{key: _hex(array) for key, array in arrays.items()},
        "rescued": counts[0],
        "clamped": counts[1],
        "refused": None,
        "why": why,
    }


def _refusal(name: str, words: Any, refused: Entry, why: str) -> Entry:
    nothing = dict.fromkeys(("codes", "scales", "payload", "rescued", "clamped"))
    source = _hex(np.array([words], np.uint32))
    head = {"id": name, "dtype": "F32", "shape": [1, len(words)], "source": source}
    return head | nothing | {"refused": refused, "why": [[0, why]]}


def _refused(kind: str, lane: int | None, word: int) -> Entry:
    return {"kind": kind, "row": 0, "group": 0, "lane": lane, "word": word}


def _reconstruct(fmt: NumericFormat) -> Iterator[Entry]:
    """The tensors of the golden artifact with every format, then every legal code under chosen scales."""
    golden = HERE / "golden" / "v2"
    name = "v2_nine_formats"
    expected = json.loads((golden / f"{name}.expected.json").read_text())
    artifact = (golden / f"{name}.ninfer").read_bytes()
    with np.load(golden / f"{name}.expected.npz") as arrays:
        for item in expected["objects"]:
            if item.get("format") == fmt.name:
                begin = expected["payload_offset"] + item["offset"]
                payload = np.frombuffer(artifact[begin : begin + item["bytes"]], np.uint8)
                fp32 = arrays[item["arrays"]["float32_bits"]]
                yield _words(
                    f"golden.{item['name']}", item["shape"], payload, fp32, "a tensor of a golden artifact"
                )
    yield from _every_code(fmt)


def _every_code(fmt: NumericFormat) -> Iterator[Entry]:
    why = "every legal code under chosen scales"
    if isinstance(fmt, GroupedFormat):
        scales = [0x0001, 0x0155, 0x03FF, 0x0400, 0x1555, 0x3555, 0x3C01, 0x7BFF]
        row = np.arange(fmt.qmin, fmt.qmax + 1, dtype=np.int8)
        codes = np.tile(row, (len(scales), 1))
        words = np.repeat(np.array(scales, np.uint16)[:, None], -(-row.size // fmt.group), axis=1)
        fp32 = [[reconstruct_grouped(int(code), scale) for code in row] for scale in scales]
        yield _words(
            "every_code", list(codes.shape), _grouped(fmt, codes, words), np.array(fp32, np.uint32), why
        )
    elif fmt is FP8_E4M3FN_ROW_BF16S:
        scales = [0x0001, 0x0055, 0x007F, 0x0080, 0x3F80, 0x3FAB, 0x7F00, 0x7F7F]
        row = np.array([code for code in range(256) if code & 0x7F != 0x7F], np.uint8)
        fp32 = [[reconstruct_row(int(code), scale) for code in row] for scale in scales]
        payload = _rows(np.tile(row, (len(scales), 1)), np.array(scales, np.uint16))
        yield _words("every_code", [len(scales), row.size], payload, np.array(fp32, np.uint32), why)
    elif fmt is NVFP4:
        codes = np.tile(np.arange(16, dtype=np.uint8), (128, 4))
        scales8 = (np.arange(512) % 127).astype(np.uint8).reshape(128, 4)
        for divisor in (0x40490FDB, 0x7E967699):
            table = [[reconstruct_nvfp4(code, scale, divisor) for code in range(16)] for scale in range(127)]
            fp32 = np.array(table, np.uint32)[scales8].reshape(128, 64)
            planes = (pack_codes(codes), swizzle(scales8), np.array([divisor], np.uint32))
            payload = _placed(fmt, (128, 64), planes)
            why = "every code under every scale" + (", to subnormal values" if divisor > 0x7E000000 else "")
            yield _words(f"every_pair.{divisor:08x}", [128, 64], payload, fp32, why)


def _words(name: str, shape: list[int], payload: Any, fp32: Any, why: str) -> Entry:
    distinct, inverse = np.unique(fp32, return_inverse=True)
    bf16 = np.array([_bf16(int(word)) for word in distinct], np.uint16)[inverse].reshape(fp32.shape)
    arrays = {"payload": payload, "fp32": fp32, "bf16": bf16}
    return {"id": name, "shape": shape, **{key: _hex(array) for key, array in arrays.items()}, "why": why}


@cache
def _bf16(word: int) -> int:
    """The binary32 word rounded a second time, in exact rationals; an infinity stays one."""
    sign = sign_of(BINARY32, word)
    if not is_finite(BINARY32, word):
        return BFLOAT16.exponent_mask | sign << 15
    return round_to(BFLOAT16, abs(finite_value(BINARY32, word)), sign)


def _check(fmt: NumericFormat) -> Iterator[Entry]:
    """The payload that each mutation of `golden/invalid` changed, and the legal ones beside them; equal ones once."""
    seen: set[bytes] = set()
    for entry in json.loads((HERE / "golden" / "invalid" / "manifest.json").read_text()):
        fault = next((code for start, code in FAULTS.items() if entry["kind"].startswith(start)), None)
        legal = entry["kind"].startswith(CONTROLS)
        if (fault or legal) and (legal or entry["verdict"] == "invalid"):
            for item, payload in _tensors(HERE / "golden" / "invalid" / entry["file"]):
                mutated = entry["object"] is None or item.name == entry["object"]
                if item.format is fmt and mutated and payload not in seen:
                    seen.add(payload)
                    head = {"id": entry["id"], "shape": list(item.shape), "payload": payload.hex()}
                    yield head | {"legal": legal, "fault": None if legal else fault, "why": entry["reason"]}


@cache
def _tensors(path: Path) -> tuple[tuple[TensorObject, bytes], ...]:
    found = []
    with open_path(path) as opened:
        artifact = read_artifact(opened.files, opened.entry, Findings())
        for item in artifact.objects if artifact else ():
            if isinstance(item, TensorObject) and item.format in QUANTIZED:
                size = item.layout.encoded_size(item.format, item.shape)
                found.append((item, read(artifact.payload, item.offset, size)))
    return tuple(found)


def _grouped(fmt: GroupedFormat, codes: Any, scales: Any) -> Any:
    base, high, words = row_split.pack(fmt, row_split.GroupedWords(codes, scales))
    planes = (base, words) if high.size == 0 else (base, high, words)
    return _placed(fmt, codes.shape, planes)


def _rows(codes: Any, scales: Any) -> Any:
    return _placed(FP8_E4M3FN_ROW_BF16S, codes.shape, (codes, scales))


def _placed(fmt: NumericFormat, shape: tuple[int, ...], planes: Any) -> Any:
    """The planes where the layout has them, zeros between."""
    layout = canonical_layout(fmt)
    payload = np.zeros(layout.encoded_size(fmt, shape), np.uint8)
    for plane, words in zip(layout.planes(fmt, shape), planes, strict=True):
        payload[plane.span.offset : plane.span.offset + plane.span.length] = words.reshape(-1).view(np.uint8)
    return payload


def _hex(array: Any) -> str:
    return str(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes().hex())


if __name__ == "__main__":
    for file, content in documents().items():
        (TARGET / file).write_bytes(content)
