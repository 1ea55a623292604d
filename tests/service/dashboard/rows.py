"""What rows hold: objects, results, reports and findings as the service writes them, and names as attackers do."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from ninfer_core.findings import FINDINGS, clip
from ninfer_core.verify.checks import CHECKS
from ninfer_core.verify.report import versions
from service.records.models import Artifact, Object, Result, Shard

MARKUP = "<script>alert('x')</script><img src=x onerror=alert(1)>"
REORDERED = "weights\u202egnp.exe"
CONTROLS = "a\x00b\x1b[31mred\r\nnext"
MEGABYTE = "layers/" + "x" * 1_000_000 + "/end"
HOSTILE = (MARKUP, REORDERED, CONTROLS, MEGABYTE, "=1+2", "\u05d0\u05d1\u05d2", "e" + "\u0301" * 300)


ACCOUNTING = {
    "total": 91,
    "used": 88,
    "excluded": 2,
    "unaccounted": 1,
    "shared": {},
    "excluded_tensors": {"rotary.inv_freq": "computed when it runs", "vision.bias": "text only"},
    "unaccounted_tensors": ["lm_head.weight"],
}
SAMPLE = {
    "fraction": 0.01,
    "seed": 7,
    "rows": 422,
    "of_rows": 39_744,
    "detects": {"one_row": 0.0106, "one_permille": 0.348, "one_percent": 0.986},
}


def sha256(text: str) -> str:
    """Some digest."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def finding(
    code: str,
    object_: str | None,
    message: str,
    *,
    where: dict[str, Any] | None = None,
    expected: str = "",
    found: str = "",
    count: int = 1,
    about: str = "artifact",
) -> dict[str, Any]:
    """One finding as a report lists it."""
    definition = FINDINGS[code]
    return {
        "code": code,
        "rule": definition.rule,
        "severity": definition.severity,
        "check": definition.check if about == "artifact" else about,
        "about": about,
        "object": None if object_ is None else clip(object_),
        "where": where or {},
        "expected": expected,
        "found": found,
        "count": count,
        "message": clip(message),
    }


def tensor_names(count: int) -> list[str]:
    """Names as a model has them."""
    parts = (
        "attention/query_key",
        "attention/value",
        "attention/output",
        "mlp/gate_up",
        "mlp/down",
        "input_norm/weight",
        "post_attention_norm/weight",
    )
    body = [f"text/layers/{number // len(parts)}/{parts[number % len(parts)]}" for number in range(count - 2)]
    return ["text/embedding", *body, "tokenizer.json"][:count]


def object_row(ordinal: int, name: str, kind: str) -> Object:
    """An object as a directory lists it."""
    if name.endswith(".json"):
        entry = {"encoding": "raw-bytes-v1", "shape": None, "offset": ordinal * 4_096, "bytes": 11_422_654}
        return Object(ordinal=ordinal, name=name, kind="resource", format=None, layout=None, entry=entry)
    norm = "norm" in name
    shape = [5_120] if norm else [7_168, 5_120]
    fmt = ("BF16" if norm else "Q4G64_F16S") if kind == "ninfer" else "BF16"
    size = 10_240 if norm else 19_496_960
    layout = ("contiguous-le-v1" if norm else "row-split-k128-v1") if kind == "ninfer" else None
    entry = {"encoding": None, "shape": shape, "offset": ordinal * 19_496_960, "bytes": size}
    return Object(ordinal=ordinal, name=name, kind="tensor", format=fmt, layout=layout, entry=entry)


def two_shards(artifact: Artifact) -> list[Shard]:
    """The work on an artifact in two halves."""
    half = artifact.bytes // 2
    return [
        Shard(number=0, first=0, stop=1, bytes=half, bytes_done=0, objects=1, done=False),
        Shard(number=1, first=1, stop=2, bytes=artifact.bytes - half, bytes_done=0, objects=1, done=False),
    ]


def result_row(row: Object, failed: set[int], not_checked: set[int]) -> Result:
    """What was found of an object."""
    outcome = "failed" if row.ordinal in failed else "not_checked" if row.ordinal in not_checked else "passed"
    lossy = row.format == "Q4G64_F16S"
    sqnr = 19.0 + (row.ordinal * 37 % 101) / 25
    error = {
        "max_abs_error": 0.0227 + row.ordinal % 17 / 1_000 if lossy else 0.0,
        "rmse": 0.0102 if lossy else 0.0,
        "sqnr_db": sqnr if lossy else None,
        "cosine": 0.9943 if lossy else None,
        "undefined": {} if lossy else {"sqnr_db": "there is no error"},
    }
    metrics: dict[str, Any] = {}
    if row.kind == "tensor":
        metrics = {"error": error, "groups": 573_440, "zero_groups": row.ordinal % 3, "undefined": {}}
    return Result(
        ordinal=row.ordinal,
        outcome=outcome,
        evidence=None if outcome != "passed" else "derived-exact" if lossy else "copied-exact",
        sha256=sha256(row.name),
        identity=f"sha256:{sha256(row.name)}",
        metrics=metrics,
        nmse=math.pow(10, -sqnr / 10) if lossy else None,
    )


def report_head(
    artifact: Artifact,
    verdict: str,
    asked: Sequence[str],
    findings: Sequence[dict[str, Any]],
    objects: Sequence[Object],
    not_checked: set[int],
    reasons: dict[str, str],
    extent: str = "full",
) -> dict[str, Any]:
    """A report without its objects and findings; `extent` is how far parity, and with it every object, was covered."""
    total = sum(row.entry["bytes"] for row in objects)
    none = sum(row.entry["bytes"] for row in objects if row.ordinal in not_checked)
    failing = {document["check"] for document in findings if document["severity"] == "error"}
    checks = []
    for name in CHECKS:
        outcome = "not_asked" if name not in asked else "failed" if name in failing else "passed"
        outcome = "not_checked" if outcome == "passed" and name in reasons else outcome
        counts = (0, 0) if outcome == "not_asked" else (len(objects) - len(not_checked), total - none)
        checks.append(
            {
                "name": name,
                "outcome": outcome,
                "coverage": _coverage(name, outcome, name in reasons, extent),
                "objects": counts[0],
                "bytes": counts[1],
                "reason": reasons.get(name),
            }
        )
    return {
        "schema": "ninfer-gate/report/1",
        "verdict": verdict,
        "artifact": {
            "kind": artifact.kind,
            "revision": artifact.revision,
            "identity": {"model_id": artifact.model_id, "weights_id": artifact.weights_id},
            "name": None,
            "digest": artifact.digest,
            "content_root": f"sha256:{sha256('root')}",
            "bytes": artifact.bytes,
            "files": [],
        },
        "recipe": None,
        "checks": checks,
        "coverage": {
            "objects": _extent(len(objects), len(not_checked), extent),
            "bytes": _extent(total, none, extent),
        },
        "sample": SAMPLE if extent == "sampled" else None,
        "unlisted_findings": {},
        "versions": versions(),
    }


def _coverage(check: str, outcome: str, open_: bool, extent: str) -> str:
    if outcome == "not_asked":
        return "none"
    if extent == "reused" and check not in ("structure", "inventory"):
        return extent
    return extent if check == "parity" and not open_ else "partial" if open_ else "full"


def _extent(total: int, none: int, extent: str) -> dict[str, int]:
    counts = {"full": 0, "sampled": 0, "reused": 0, "none": none, "total": total}
    return counts | {extent: total - none}


def made_object(row: Object) -> dict[str, Any]:
    """How an object was made."""
    common = {"name": row.name, "offset": row.entry["offset"], "bytes": row.entry["bytes"], "sha256": None}
    if row.kind == "resource":
        return common | {"kind": "resource", "source": {"role": "base", "file": row.name}}
    return common | {
        "kind": "tensor",
        "format": row.format,
        "layout": row.layout,
        "shape": row.entry["shape"],
        "encode": "MAXABS_F16_RECIP_RNE_V1" if row.format == "Q4G64_F16S" else "copy_words",
        "sources": [{"role": "base", "tensor": f"model.{row.name.replace('/', '.')}.weight"}],
        "rescued_groups": 0,
        "clamped_lanes": row.ordinal % 5,
    }


def parity_findings(names: Sequence[str]) -> list[dict[str, Any]]:
    """Findings of several checks, as of one bad encoder and one bad plane."""
    first, second, third = names[1], names[2], names[4]
    return [
        finding(
            "parity.code_mismatch",
            first,
            "row 4,096, group 17, lane 5: stored code -3, the profile gives -2 (12 codes in 9 groups, first shown)",
            where={"row": 4_096, "group": 17, "lane": 5},
            expected="-2",
            found="-3",
            count=12,
        ),
        finding(
            "values.scale_invalid",
            second,
            "row 12, group 3: the scale word is 0x7c00",
            where={"row": 12, "group": 3},
            expected="a finite binary16 that is not negative",
            found="0x7c00",
        ),
        finding(
            "layout.gap_nonzero",
            third,
            "byte 18,350,080 of the tensor lies between two planes and is 0x41",
            where={"byte": 18_350_080},
            expected="0x00",
            found="0x41",
            count=3,
        ),
        finding(
            "statistics.all_zero",
            names[6],
            "every value of BF16 [5120] is zero",
            expected="some value that is not zero",
            found="zeros",
        ),
    ]


def unaccounted() -> dict[str, Any]:
    """What binding says of source tensors that no rule reads: the same list three times."""
    names = [f"encoder.layer.{number}.attention.output.LayerNorm.weight" for number in range(8)]
    said = f"{', '.join(names)} and 83 more"
    return finding(
        "source.tensor_unaccounted",
        None,
        f"91 tensors of base are neither read nor named as left out: {said}.",
        where={"role": "base", "tensors": names},
        expected="every tensor read, or left out with a reason",
        found=said,
        count=91,
        about="source",
    )
