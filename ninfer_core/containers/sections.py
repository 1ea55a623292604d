"""The members that only revision 3 has: components, bindings, uses, metadata, provenance (containers, "Revision 3")."""

from collections.abc import Mapping, Sequence
from typing import Any

from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.containers.members import Record, require_record
from ninfer_core.findings import Findings
from ninfer_core.layouts.base import elements
from ninfer_core.strict_json import Json, Real, show, type_name

POLICIES = ("A16Only", "AllowA8", "AllowA4")


class Names:
    """What the objects of a directory are called, also those that are otherwise broken."""

    def __init__(self, objects: Sequence[ArtifactObject]) -> None:
        self.tensors: dict[str, TensorObject | BrokenObject] = {}
        self.resources: set[str] = set()
        for item in objects:
            if item.name is None:
                continue
            if isinstance(item, ResourceObject) or (
                isinstance(item, BrokenObject) and item.kind == "resource"
            ):
                self.resources.add(item.name)
            else:
                self.tensors[item.name] = item


def read_sections(root: Record, objects: Sequence[ArtifactObject], findings: Findings) -> Mapping[str, Any]:
    """Check every reference and rule; what is returned is the plain JSON of the sections that are there."""
    names = Names(objects)
    if (components := root.record("components")) is not None:
        _components(components, names)
    bindings = root.record("bindings")
    if bindings is not None:
        for parameter, value in bindings.members.items():
            _key(bindings, parameter)
            _binding(value, f"bindings.{parameter}", names, findings)
    uses = root.array("uses")
    if uses is not None:
        _uses(uses, bindings, names, findings)
    if (metadata := root.record("metadata")) is not None:
        metadata.text("name")
    root.record("provenance")
    sections = ("components", "bindings", "uses", "metadata", "provenance")
    return {name: plain(root.members[name]) for name in sections if name in root.members}


def plain(value: Json) -> Any:
    """JSON as the standard library gives it: exact numbers become floats again."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value.value if isinstance(value, Real) else value


def _key(record: Record, name: str) -> None:
    if not name or "\0" in name:
        record.value_error(
            name, "a nonempty name without U+0000", f"a name in {record.path} is empty or holds U+0000"
        )


def _components(components: Record, names: Names) -> None:
    if "text" not in components.members:
        components.missing("text")
    for name in components.members:
        _key(components, name)
        component = components.record(name)
        if component is not None:
            _component(component, name, components, names)


def _component(component: Record, name: str, components: Record, names: Names) -> None:
    component.closed(("config",), ("target", "resources", "proposal"))
    component.record("config")
    target = component.text("target")
    if target is not None and (target not in components.members or target == name):
        component.unknown_reference("target", "other component", target)
    resources = component.record("resources")
    if resources is not None:
        _resources(resources, names)
    if "proposal" not in component.members:
        return
    if name != "text":
        component.value_error(
            "proposal", "allowed here", f"{component.path} has a proposal; only text may have one"
        )
    proposal = component.record("proposal")
    if proposal is None:
        return
    domain = proposal.text("domain")
    if domain == "indexed":
        proposal.closed(("domain", "rows"))
        proposal.integer("rows", 1)
    else:
        proposal.closed(("domain",))
        if domain is not None and domain != "full":
            proposal.value_error("domain", '"full" or "indexed"')


def _resources(resources: Record, names: Names) -> None:
    for role in resources.members:
        _key(resources, role)
        resource = resources.text(role)
        if resource is not None and resource not in names.resources:
            resources.unknown_reference(role, "resource", resource)


def _binding(value: Json, path: str, names: Names, findings: Findings) -> None:
    record = require_record(value, None, path, findings)
    if record is None:
        return
    if "parts" in record.members:
        record.closed(("parts",))
        for index, part in enumerate(record.array("parts", nonempty=True) or ()):
            entry = require_record(part, None, f"{path}.parts[{index}]", findings)
            if entry is not None:
                entry.closed(("object", "range"))
                _range(entry, _tensor_name(entry, names), names, findings)
    else:
        record.closed(("object",))
        _tensor_name(record, names)


def _tensor_name(record: Record, names: Names) -> str | None:
    name = record.text("object")
    if name is None or name in names.tensors:
        return name
    record.unknown_reference("object", "tensor", name)
    return None


def _range(part: Record, name: str | None, names: Names, findings: Findings) -> None:
    bounds = part.array("range")
    if bounds is None:
        return
    if len(bounds) != 2 or not all(type(bound) is int for bound in bounds):
        types = ", ".join(type_name(bound) for bound in bounds[:4])
        part.value_error(
            "range",
            "an array of two integers, [begin, end]",
            f"{part.path}.range holds {len(bounds)} values ({types})",
        )
        return
    shape = names.tensors[name].shape if name is not None else None
    count = elements(shape) if shape is not None else None
    begin, end = bounds
    if not 0 <= begin < end or (count is not None and end > count):
        findings.add(
            "structure.binding_range",
            f"{part.path}.range is {show(bounds)}; {show(name)} has {count if count is not None else 'an unknown number of'} elements",
            where={"path": part.path, "elements": count},
            expected=f"0 <= begin < end <= {count if count is not None else 'element count'}",
            found=show(bounds),
        )


def _uses(uses: list[Json], bindings: Record | None, names: Names, findings: Findings) -> None:
    seen: set[tuple[str, str]] = set()
    for index, value in enumerate(uses):
        path = f"uses[{index}]"
        use = require_record(value, None, path, findings)
        if use is None:
            continue
        use.closed(("parameter", "input"), ("activation_policy", "auxiliaries"))
        parameter, source = use.text("parameter"), use.text("input")
        if parameter is not None and bindings is not None and parameter not in bindings.members:
            use.unknown_reference("parameter", "binding", parameter)
        if "activation_policy" in use.members:
            policy = use.text("activation_policy")
            if policy is not None and policy not in POLICIES:
                use.value_error("activation_policy", f"one of {', '.join(POLICIES)}")
        if (auxiliaries := use.record("auxiliaries")) is not None:
            for role, auxiliary in auxiliaries.members.items():
                _key(auxiliaries, role)
                _binding(auxiliary, f"{path}.auxiliaries.{role}", names, findings)
        if parameter is not None and source is not None:
            if (parameter, source) in seen:
                findings.add(
                    "structure.use_duplicate",
                    f"{path} repeats parameter {show(parameter)} with input {show(source)}",
                    where={"path": path},
                    expected="one use",
                    found="two",
                )
            seen.add((parameter, source))
