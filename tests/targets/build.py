"""Target documents for tests, and artifacts compared with them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ninfer_core.containers.directory import Artifact
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFiles
from ninfer_core.targets import Target, parse_target
from ninfer_core.verify.inventory import compare
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.unreferenced import scan

Document = dict[str, Any]


def document(**members: Any) -> Document:
    """A small sound target in which `members` replace or, with None, remove."""
    sound: Document = {
        "schema": "ninfer-target/1",
        "identity": {"model_id": "own", "weights_id": "first"},
        "sets": {"layers": [0, 1], "odd": [1], "even": [0]},
        "objects": [
            {"resource": "frontend/tokenizer.json", "encoding": "raw-bytes-v1"},
            {
                "each": "l",
                "in": "layers",
                "body": [
                    {"tensor": "layers/{l}/qkv", "shape": [12, 16], "format": "BF16"},
                    {"tensor": "layers/{l}/mlp", "shape": [4, 64], "format": "Q4G64_F16S", "only": "even"},
                    {"tensor": "layers/{l}/mlp", "shape": [4, 64], "format": "W8G32_F16S", "only": "odd"},
                ],
            },
            {"tensor": "norm", "shape": [16], "format": "BF16"},
        ],
        "views": [
            {"view": "layers/{l}/q", "of": "layers/{l}/qkv", "rows": [0, 4], "each": {"l": "layers"}},
            {"view": "layers/{l}/k", "of": "layers/{l}/qkv", "rows": [4, 8], "each": {"l": "layers"}},
            {"view": "layers/{l}/v", "of": "layers/{l}/qkv", "rows": [8, 12], "each": {"l": "layers"}},
        ],
        "aliases": [{"role": "head", "objects": ["norm"]}],
    }
    changed = sound | members
    return {name: value for name, value in changed.items() if value is not None}


def parsed(root: Document | bytes) -> tuple[Target | None, Findings]:
    """A document read, with everything that was found."""
    findings = Findings()
    text = root if isinstance(root, bytes) else json.dumps(root).encode()
    target = parse_target(text, findings)
    assert (target is None) == bool(findings.errors)
    return target, findings


def sound(root: Document | None = None) -> Target:
    """The target of a document in which everything fits."""
    target, findings = parsed(document() if root is None else root)
    assert target is not None, [finding.message for finding in findings]
    return target


def opened(path: Path) -> tuple[Artifact | None, Findings]:
    """An artifact, with what is wrong with its structure."""
    findings = Findings()
    return read_artifact(DiskFiles(path.parent), path.name, findings), findings


def inventory(path: Path, target: Target, canonical: bool = False) -> tuple[frozenset[int], Findings]:
    """Check B of a file whose structure is sound: the ordinals that it excludes, and what it finds."""
    artifact, findings = opened(path)
    assert artifact is not None
    assert not findings.errors, [finding.message for finding in findings]
    excluded = compare(artifact, target, canonical, findings)
    findings.extend(scan(artifact, Pool(1), canonical))
    return excluded, findings


def codes(findings: Findings, severity: str = "error") -> Counter[str]:
    """How often each code was given with this severity."""
    return Counter(finding.code for finding in findings if finding.severity == severity)


def rules(findings: Findings, severity: str = "error") -> set[str | None]:
    """The rules of all findings of this severity."""
    return {finding.definition.rule for finding in findings if finding.severity == severity}
