"""Small artifacts, checkpoints and recipes for tests, made byte by byte or by the product's own writer."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.writer import Heading, TensorSpec, blueprint
from ninfer_core.findings import Findings
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.io import DiskFiles
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import Shape
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan, bind, parse_recipe
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.report import Report

EVERYTHING = ("structure", "layout", "values", "statistics")
SAFETENSORS_WORDS = {
    "BF16": "<u2",
    "F16": "<u2",
    "F32": "<u4",
    "F64": "<u8",
    "I64": "<u8",
    "I32": "<u4",
    "U8": "u1",
    "F8_E4M3": "u1",
}


def ninfer_file(
    revision: int, root: Mapping[str, Any] | bytes, payload: bytes = b"", artifact_id: bytes = bytes(16)
) -> bytes:
    """A whole entry file; `root` is JSON or its text."""
    text = root if isinstance(root, bytes) else json.dumps(root, separators=(",", ":")).encode()
    head = (
        b"NINFER\0"
        + bytes([revision])
        + len(text).to_bytes(8, "little")
        + (artifact_id if revision == 3 else b"")
        + text
    )
    return head.ljust(-(-len(head) // 4096) * 4096, b"\0") + payload


def legal_payload(fmt: NumericFormat, shape: Shape, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A random payload of legal words with a few zero scales over zero codes; padding and gaps are zero."""
    layout = canonical_layout(fmt)
    n, k = layout.matrix(fmt, shape)
    payload = np.zeros(layout.encoded_size(fmt, shape), np.uint8)
    planes: Sequence[NDArray[Any]]
    match fmt:
        case DirectFormat():
            planes = [rng.integers(0, 1 << fmt.word_bits, n * k, np.uint32).astype(f"<u{fmt.word_bits // 8}")]
        case GroupedFormat():
            from ninfer_core.layouts.row_split import GroupedWords, pack

            scales = rng.integers(0, 0x7C00, (n, -(-k // fmt.group)), np.uint16)
            scales[rng.random(scales.shape) < 0.2] = 0
            codes = rng.integers(fmt.qmin, fmt.qmax + 1, (n, k)).astype(np.int8)
            codes[np.repeat(scales, fmt.group, axis=1)[:, :k] == 0] = 0
            planes = [plane for plane in pack(fmt, GroupedWords(codes, scales)) if plane.size]
        case BlockFormat():
            divisor = np.array([0x3F800000 + int(rng.integers(0, 1000))], "<u4")
            planes = [
                rng.integers(0, 256, n * k // 2, np.uint8),
                rng.integers(0, 0x7F, n * k // 16, np.uint8),
                divisor,
            ]
        case RowFormat():
            codes8 = rng.integers(0, 0x7F, (n, k), np.uint8) | (rng.integers(0, 2, (n, k), np.uint8) << 7)
            rows = rng.integers(0, 0x7F80, n, np.uint16)
            rows[rng.random(n) < 0.2] = 0
            codes8[rows == 0] &= 0x80
            planes = [codes8.reshape(-1), rows]
    for plane, words in zip(layout.planes(fmt, shape), planes, strict=True):
        payload[plane.span.offset : plane.span.offset + plane.span.length] = (
            np.ascontiguousarray(words.astype(plane.word)).view(np.uint8).reshape(-1)
        )
    return payload


def write_artifact(
    path: Path, tensors: Mapping[str, tuple[NumericFormat, Shape, NDArray[np.uint8]]], revision: int = 2
) -> Path:
    """One file with these payloads."""
    specs = [TensorSpec(name, shape, fmt, canonical_layout(fmt)) for name, (fmt, shape, _) in tensors.items()]
    draft = blueprint(path.name, specs, Heading("test", "x", {"text": {"config": {}}}, {}), revision)
    file = draft.files[0]
    content = bytearray(file.bytes)
    content[: len(file.header)] = file.header
    for offset, (_, _, payload) in zip(draft.offsets, tensors.values(), strict=True):
        content[file.payload_offset + offset : file.payload_offset + offset + payload.size] = (
            payload.tobytes()
        )
    path.write_bytes(content)
    return path


def write_checkpoint(
    folder: Path, tensors: Mapping[str, tuple[str, NDArray[Any]]], name: str = "model.safetensors"
) -> Path:
    """A safetensors file of (dtype, words) by name, in this order."""
    entries, data = {}, b""
    for tensor, (dtype, words) in tensors.items():
        raw = np.ascontiguousarray(words.astype(SAFETENSORS_WORDS[dtype])).tobytes()
        entries[tensor] = {
            "dtype": dtype,
            "shape": list(words.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    head = json.dumps(entries).encode()
    (folder / name).write_bytes(len(head).to_bytes(8, "little") + head + data)
    return folder


def tensor(name: str, shape: Sequence[int], dtype: str) -> dict[str, Any]:
    """The operation that reads a source tensor."""
    return {"op": "tensor", "from": "base", "name": name, "shape": list(shape), "dtype": dtype}


def recipe(
    rules: Sequence[Mapping[str, Any]], resources: Sequence[Mapping[str, Any]] = (), **more: Any
) -> dict[str, Any]:
    """A recipe over one safetensors file."""
    return {
        "schema": "ninfer-recipe/1",
        "identity": {"model_id": "test", "weights_id": "x"},
        "recipe_id": "test-v1",
        "sources": {
            "base": {
                "repository": "none",
                "revision": "none",
                "license": "none",
                "kind": "safetensors-file",
                "file": "model.safetensors",
                "exact_tensor_names": False,
            }
        },
        "resources": list(resources),
        "rules": list(rules),
        **more,
    }


def plan(folder: Path, document: Mapping[str, Any]) -> Plan:
    """A recipe bound to the checkpoint in `folder`."""
    findings = Findings()
    parsed = parse_recipe(json.dumps(document).encode(), findings)
    bound = bind(parsed, {"base": DiskFiles(folder)}, {}, findings) if parsed is not None else None
    assert bound is not None, [finding.message for finding in findings]
    return bound


def run(
    path: Path, against: Plan | None = None, checks: Sequence[str] = EVERYTHING, workers: int | None = None
) -> Report:
    """Verify a file, with parity when there is a plan."""
    names = (*checks, "parity") if against is not None else checks
    with open_path(path) as opened:
        return verify(
            opened, asked(names), Against(against) if against is not None else None, workers=workers
        )


def codes(report: Report) -> set[str]:
    """The codes of a report's findings."""
    return {finding.code for finding in report.findings}
