"""`ninfer-gate targets`: the registered contracts, one of them in full, and a document of one's own checked."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ninfer_core.errors import CannotRead, Usage
from ninfer_core.findings import Finding, Findings
from ninfer_core.io import DiskFile
from ninfer_core.targets import TARGETS, Target, TargetObject, is_registered, load_target, registered_recipe
from service.cli.failures import Task, guarded
from service.cli.output import TARGETS_SCHEMA, JsonTarget, json_target, no_document, not_empty

_NOTHING_KEPT = "Nothing is kept."


def list_targets(json: str | None) -> int:
    """Print the registered targets; the exit code."""

    def work() -> int:
        target = json_target(json)
        if target is not None:
            target.write(_document([summary(item) for item in TARGETS]))
        if target is None or not target.alone:
            from service.cli.targets_view import show_list

            show_list(list(TARGETS))
        return 0

    return guarded(_task("listing the targets", json), work)


def show_target(name: str, json: str | None, limit: int | None) -> int:
    """Print everything a target says; `name` is `MODEL/WEIGHTS` of a registered one, or a file. The exit code."""

    def work() -> int:
        not_empty("NAME", name)
        found: Sequence[Target] = [target for target in TARGETS if target.identity == name]
        target = json_target(json, [] if found else [Path(name)])
        findings = Findings()
        if not found:
            if not Path(name).exists():
                known = ", ".join(item.identity for item in TARGETS)
                raise Usage(f"{name} is no registered target and no file; registered are {known}.")
            own = _load(Path(name), findings)
            found = [] if own is None else [own]
        if target is not None:
            target.write(_document([in_full(item) for item in found], tuple(findings)))
        if target is None or not target.alone:
            from service.cli.targets_view import show_faults, show_in_full

            for item in found:
                show_in_full(item, limit)
            show_faults(name, found, tuple(findings))
        return 0 if found else 1

    return guarded(_task(f"showing the target {name}", json), work)


def check_target(path: str, json: str | None) -> int:
    """Read a target document and name every fault of it; the exit code."""

    def work() -> int:
        target = json_target(json, [Path(not_empty("FILE", path))])
        findings = Findings()
        found = _load(Path(path), findings)
        summaries = [] if found is None else [summary(found)]
        if target is not None:
            target.write(_document(summaries, tuple(findings)))
        if target is None or not target.alone:
            from service.cli.targets_view import show_check

            show_check(path, found, tuple(findings))
        return 0 if found is not None else 1

    return guarded(_task(f"checking the target {path}", json), work)


def counts(objects: Sequence[TargetObject], key: Callable[[TargetObject], str]) -> list[tuple[str, int, int]]:
    """Objects and tensor bytes by some key, in the order of their first object."""
    number: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for item in objects:
        number[key(item)] += 1
        size[key(item)] += item.bytes or 0
    return [(name, count, size[name]) for name, count in number.items()]


def summary(target: Target) -> dict[str, Any]:
    """What a list says of a target, as strict JSON values."""
    tensors = [item for item in target.objects if item.kind == "tensor"]
    return {
        "model_id": target.model_id,
        "weights_id": target.weights_id,
        "key": target.key,
        "recipe_id": target.recipe_id,
        "revisions": list(target.revisions),
        "filename": target.filename,
        "inventory_sha256": target.inventory_sha256,
        "digest": target.digest,
        "registered": is_registered(target),
        "objects": len(target.objects),
        "tensors": len(tensors),
        "resources": len(target.objects) - len(tensors),
        "tensor_bytes": target.tensor_bytes,
        "formats": {name: count for name, count, _ in counts(tensors, format_name)},
        "bundles": {name: list(members) for name, members in target.bundles.items()},
    }


def format_name(item: TargetObject) -> str:
    """The format of a tensor, the encoding of a resource."""
    return item.format.name if item.format is not None else item.encoding or ""


def in_full(target: Target) -> dict[str, Any]:
    """Everything a target says, expanded, as strict JSON values."""
    return summary(target) | {
        "checks": own_checks(target),
        "components": [
            {"name": name, "objects": count, "tensor_bytes": size}
            for name, count, size in counts(target.objects, lambda item: target.component(item.name) or "")
        ],
        "inventory": [_object(target, item) for item in target.objects],
        "views": [
            {"view": view.name, "of": view.parent, "rows": [view.begin, view.end]} for view in target.views
        ],
        "expert_views": [
            {
                "of": view.parent,
                "experts": view.experts,
                "stride": view.stride,
                "parts": {name: [begin, end] for name, begin, end in view.parts},
            }
            for view in target.expert_views
        ],
        "aliases": [
            {
                "role": alias.role,
                "objects": list(alias.objects),
                "axes": None if alias.axes is None else list(alias.axes),
                "rows": None if alias.rows is None else list(alias.rows),
            }
            for alias in target.aliases
        ],
        "recipe_registered": target.recipe_id is not None and registered_recipe(target.recipe_id) is not None,
    }


def own_checks(target: Target) -> dict[str, Any]:
    """The hashes of a target's own expansion, as its member `checks` may state them."""
    from ninfer_core.targets.agreement import own_hashes

    stated = target.document.get("views", []), target.document.get("aliases", [])
    hashes = own_hashes(target.objects, target.views)
    views = {"templates": len(stated[0]), "bindings": len(target.views), "sha256": hashes.pop("views")}
    aliases = {"templates": len(stated[1]), "bindings": len(target.aliases)}
    return {**hashes, "views": views, "aliases": aliases}


def _object(target: Target, item: TargetObject) -> dict[str, Any]:
    return {
        "name": item.name,
        "kind": item.kind,
        "shape": None if item.shape is None else list(item.shape),
        "format": None if item.format is None else item.format.name,
        "layout": None if item.layout is None else item.layout.name,
        "encoding": item.encoding,
        "bytes": item.bytes,
        "bundle": item.bundle,
        "component": target.component(item.name),
    }


def _load(path: Path, findings: Findings) -> Target | None:
    if not path.is_file():
        raise CannotRead(f"{path} is not a file" if path.exists() else f"there is no file {path}")
    with closing(DiskFile(path)) as source:
        return load_target(source, findings)


def _task(doing: str, json: str | None) -> Task:
    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(TARGETS_SCHEMA, verdict, code, message)

    return Task("targets", doing, _NOTHING_KEPT, failed, JsonTarget(None) if json == "-" else None)


def _document(targets: list[dict[str, Any]], findings: tuple[Finding, ...] = ()) -> dict[str, Any]:
    from ninfer_core.verify.report import finding_json, versions

    return {
        "schema": TARGETS_SCHEMA,
        "verdict": "failed" if findings else "passed",
        "targets": targets,
        "findings": [finding_json(finding) for finding in findings],
        "versions": versions(),
    }
