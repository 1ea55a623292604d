"""Check B: an artifact against the closed list of its target, from the directory alone; no byte of an object is read.

B6, placement, is judged by `unreferenced.scan`, which reads the stretches between objects anyway.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ninfer_core.containers.directory import Artifact, ResourceObject, TensorObject
from ninfer_core.documents.contrast import contradictions
from ninfer_core.findings import Findings
from ninfer_core.layouts.base import Shape
from ninfer_core.strict_json import show
from ninfer_core.targets.choice import identity
from ninfer_core.targets.target import Target, TargetObject
from ninfer_core.verify.bound_roles import check_roles

Item = TensorObject | ResourceObject
_Signature = tuple[str, Shape | None, str | None]


LAST_ORDERED_REVISION: Final = 2  # contracts state order and placement up to it


def compare(artifact: Artifact, target: Target, canonical: bool, findings: Findings) -> frozenset[int]:
    """B1 to B5 and B7 of an artifact whose structure is sound; every difference is a finding.

    Returned are the ordinals of objects that fail B2 or B3: they are left out of C8, D and F.

    Order is an advisory, with `canonical` an error, and a rule of revisions 1 and 2: of revision 3 it is said that
    nobody judged it. Revision 3 has no identity either, but its provenance may claim one.
    """
    _check_revision(artifact, target, canonical, findings)
    _check_identity(artifact, target, findings)
    stored = {item.name: item for item in artifact.readable}
    missing, partial = _absent(stored, target)
    unexpected = [item for item in stored.values() if item.name not in target.by_name]
    _report_names(missing, unexpected, target, findings)
    bundles = target.bundles if partial else {}
    for bundle, names in partial.items():
        _report_partial(bundle, names, bundles[bundle], findings)
    differing = [
        item
        for item in stored.values()
        if item.name in target.by_name and _differs(item, target[item.name], findings)
    ]
    excluded = frozenset(item.ordinal for item in (*unexpected, *differing))
    if artifact.revision <= LAST_ORDERED_REVISION:
        _check_order(artifact, target, canonical, findings)
    else:
        sound = {name: item for name, item in stored.items() if item.ordinal not in excluded}
        check_roles(artifact.sections, target, sound, findings)
    return excluded


def _check_revision(artifact: Artifact, target: Target, canonical: bool, findings: Findings) -> None:
    if artifact.revision in target.revisions:
        return
    stated = " and ".join(map(str, target.revisions))
    unjudged = canonical and artifact.revision > LAST_ORDERED_REVISION
    asked = "; the canonical order and placement that were asked for are not judged" if unjudged else ""
    findings.add(
        "inventory.revision_not_stated",
        f"the contract is stated for revision {stated}, this is a file of revision {artifact.revision}{asked}",
        where={
            "revision": artifact.revision,
            "stated": list(target.revisions),
            **({"not_judged": ["order", "placement"]} if unjudged else {}),
        },
        expected=stated,
        found=artifact.revision,
    )


def _check_identity(artifact: Artifact, target: Target, findings: Findings) -> None:
    if artifact.revision > 2:
        _compare_claim(artifact, target, findings)
        return
    model_id, weights_id = identity(artifact)
    if (model_id, weights_id) == (target.model_id, target.weights_id):
        return
    differs = [
        name
        for name, own, wanted in (
            ("model_id", model_id, target.model_id),
            ("weights_id", weights_id, target.weights_id),
        )
        if own != wanted
    ]
    found = f"{model_id}/{weights_id}"
    unnamed = ", as every file of revision 1" if artifact.revision == 1 else ""
    findings.add(
        "inventory.identity_differs",
        f"the artifact is {show(found)}{unnamed}, the target {show(target.identity)}",
        where={"differs": differs},
        expected=target.identity,
        found=found,
    )


def _compare_claim(artifact: Artifact, target: Target, findings: Findings) -> None:
    wanted = {"model_id": target.model_id, "weights_id": target.weights_id}
    claimed = artifact.sections.get("provenance", {})
    for claim in contradictions("provenance", claimed, {"identity": wanted}):
        findings.add(
            "inventory.claim_differs",
            f"{claim.path} claims {claim.a}, the target is {claim.b}; a claim is no proof",
            where={"path": claim.path},
            expected=claim.b,
            found=claim.a,
        )


def _absent(stored: Mapping[str, Item], target: Target) -> tuple[list[str], dict[str, list[str]]]:
    """Required names that are not there, and of each bundle that is there in part what it lacks; writer order."""
    missing: list[str] = []
    lacking: dict[str, list[str]] = {}
    present = {target[name].bundle for name in stored if name in target.by_name}
    for item in target.objects:
        if item.name in stored:
            continue
        if item.bundle is None:
            missing.append(item.name)
        elif item.bundle in present:
            lacking.setdefault(item.bundle, []).append(item.name)
    return missing, lacking


def _report_names(missing: list[str], unexpected: list[Item], target: Target, findings: Findings) -> None:
    wanted: dict[_Signature, list[str]] = {}
    extra: dict[_Signature, list[str]] = {}
    for name in missing:
        wanted.setdefault(_wanted_signature(target[name]), []).append(name)
    for item in unexpected:
        extra.setdefault(_signature(item), []).append(item.name)
    renamed = {
        wanted[signature][0]: names[0]
        for signature, names in extra.items()
        if len(names) == 1 and len(wanted.get(signature, ())) == 1
    }
    for name in missing:
        other = renamed.get(name)
        hint = f"; perhaps renamed to {show(other)}" if other is not None else ""
        findings.add(
            "inventory.object_missing",
            f"{show(name)} is not in the artifact{hint}",
            object=name,
            where={} if other is None else {"renamed": other},
            expected=_stated(target[name]),
            found="no such object",
        )
    sources = {other: name for name, other in renamed.items()}
    for item in unexpected:
        origin = sources.get(item.name)
        hint = f"; perhaps {show(origin)} renamed" if origin is not None else ""
        findings.add(
            "inventory.object_unexpected",
            f"{show(item.name)} is no object of the target{hint}",
            object=item.name,
            ordinal=item.ordinal,
            where={} if origin is None else {"renamed": origin},
            expected="no such object",
            found=_described(item),
        )


def _report_partial(bundle: str, lacking: list[str], whole: Sequence[str], findings: Findings) -> None:
    gone = set(lacking)
    present = [name for name in whole if name not in gone]
    findings.add(
        "inventory.bundle_partial",
        f"of the bundle {show(bundle)} {len(present)} objects are there and {len(lacking)} are missing: "
        + ", ".join(map(show, lacking[:16])),
        where={"bundle": bundle, "missing": lacking, "present": present},
        expected="all of its objects or none",
        found=f"{len(present)} of {len(present) + len(lacking)}",
        count=len(lacking),
    )


def _differs(item: Item, wanted: TargetObject, findings: Findings) -> bool:
    """Whether kind, shape, format or layout differ (B3); a resource of another encoding is B4."""
    if isinstance(item, ResourceObject) and wanted.kind == "resource":
        if item.encoding != wanted.encoding:
            findings.add(
                "inventory.encoding_differs",
                f"the encoding is {show(item.encoding)}, not {show(wanted.encoding)}",
                object=item.name,
                ordinal=item.ordinal,
                expected=wanted.encoding,
                found=item.encoding,
            )
        return False
    differs = ["kind"]
    if isinstance(item, TensorObject) and wanted.kind == "tensor":
        facts: tuple[tuple[str, Any, Any], ...] = (
            ("shape", item.shape, wanted.shape),
            ("format", item.format, wanted.format),
            ("layout", item.layout, wanted.layout),
        )
        differs = [name for name, own, expected in facts if own != expected]
    if not differs:
        return False
    findings.add(
        "inventory.object_differs",
        _differing(item, wanted, differs),
        object=item.name,
        ordinal=item.ordinal,
        where={"differs": differs},
        expected=_stated(wanted),
        found=_described(item),
    )
    return True


def _differing(item: Item, wanted: TargetObject, differs: list[str]) -> str:
    """What the artifact has and what the target states, only where they differ."""
    if isinstance(item, TensorObject) and wanted.format is not None and wanted.layout is not None:
        own = {"shape": list(item.shape), "format": item.format.name, "layout": item.layout.name}
        stated = {
            "shape": list(wanted.shape or ()),
            "format": wanted.format.name,
            "layout": wanted.layout.name,
        }
        parts = [f"its {name} is {own[name]}, not {stated[name]}" for name in differs]
    else:
        stored = "tensor" if isinstance(item, TensorObject) else "resource"
        parts = [f"it is a {stored}, not a {wanted.kind}"]
    return f"{show(item.name)} is not what the target states: {'; '.join(parts)}"


def _check_order(artifact: Artifact, target: Target, canonical: bool, findings: Findings) -> None:
    stored = [item.name for item in artifact.readable if item.name in target.by_name]
    known = set(stored)
    wanted = [item.name for item in target.objects if item.name in known]
    wrong = [place for place, (own, name) in enumerate(zip(stored, wanted, strict=True)) if own != name]
    if not wrong:
        return
    first = wrong[0]
    findings.add(
        "inventory.order_not_canonical",
        f"{len(wrong):,} objects are not at their place in the canonical order, first {show(stored[first])}",
        object=stored[first],
        where={"position": first},
        expected=wanted[first],
        found=stored[first],
        count=len(wrong),
        severity="error" if canonical else "advisory",
    )


def _signature(item: Item) -> _Signature:
    if isinstance(item, TensorObject):
        return "tensor", item.shape, item.format.name
    return "resource", None, item.encoding


def _wanted_signature(item: TargetObject) -> _Signature:
    return item.kind, item.shape, item.encoding if item.format is None else item.format.name


def _described(item: Item) -> str:
    """An object of the artifact in words."""
    if isinstance(item, TensorObject):
        return f"tensor {list(item.shape)} {item.format.name} {item.layout.name}"
    return f"resource {item.encoding}"


def _stated(item: TargetObject) -> str:
    """An object of the target in the same words."""
    if item.format is not None and item.layout is not None:
        return f"tensor {list(item.shape or ())} {item.format.name} {item.layout.name}"
    return f"resource {item.encoding}"
