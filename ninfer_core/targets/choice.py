"""Which target an artifact is compared with: by the identity it names, by name, or by the inventory it has."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ninfer_core.containers.directory import Artifact, ResourceObject, TensorObject
from ninfer_core.documents.canonical import sorted_sha256
from ninfer_core.strict_json import show
from ninfer_core.targets.registry import TARGETS, UNNAMED_WEIGHTS, registered
from ninfer_core.targets.target import Target, resource_line, tensor_line

AUTO: Final = "auto"
NO_TARGET: Final = "no registered target"


@dataclass(frozen=True, slots=True)
class Choice:
    """The target, or the reason why there is none; `others` share its identity and have other inventories."""

    target: Target | None
    reason: str = ""
    others: tuple[Target, ...] = ()


def artifact_inventory_sha256(artifact: Artifact) -> str | None:
    """Bare hex of the artifact's own inventory, as `checks.inventory_sha256` defines it; None with a broken entry."""
    lines: list[str] = []
    for item in artifact.objects:
        match item:
            case TensorObject():
                lines.append(tensor_line(item.name, item.shape, item.format.name, item.layout.name))
            case ResourceObject():
                lines.append(resource_line(item.name, item.encoding))
            case _:
                return None
    return sorted_sha256(lines) if artifact.listed else None


def choose(targets: Iterable[Target], artifact: Artifact, wanted: str = AUTO) -> Choice:
    """The target called `wanted` (`MODEL/WEIGHTS`), or with `auto` that of the identity in the artifact.

    Of several with one identity it is the one that has the artifact's inventory, else the first. A file of
    revision 1 names its model alone and is taken as groupwise-int of it; one of revision 3 names nothing, and is
    known by its inventory only.
    """
    if wanted != AUTO:
        found = [target for target in targets if target.identity == wanted]
        return _of(found, artifact, f"for {show(wanted)}")
    if artifact.revision > 2:
        own = artifact_inventory_sha256(artifact)
        found = [target for target in targets if target.inventory_sha256 == own]
        return _of(found, artifact, "has the inventory of this artifact, and it names no identity")
    model_id, weights_id = identity(artifact)
    if model_id is None or weights_id is None:
        return Choice(None, f"{NO_TARGET}: the identity in the artifact could not be read")
    if targets is TARGETS:
        found = list(registered(model_id, weights_id))
    else:
        found = [
            target for target in targets if (target.model_id, target.weights_id) == (model_id, weights_id)
        ]
    return _of(found, artifact, f"for the identity {show(model_id)} / {show(weights_id)}")


def identity(artifact: Artifact) -> tuple[str | None, str | None]:
    """`model_id` and `weights_id` that the artifact stands for; revision 3 names neither."""
    weights_id = UNNAMED_WEIGHTS if artifact.revision == 1 else artifact.weights_id
    return artifact.model_id, weights_id


def _of(found: list[Target], artifact: Artifact, why: str) -> Choice:
    if not found:
        return Choice(None, f"{NO_TARGET} {why}")
    own = artifact_inventory_sha256(artifact) if len(found) > 1 else None
    chosen = next((target for target in found if target.inventory_sha256 == own), found[0])
    return Choice(chosen, others=tuple(target for target in found if target is not chosen))
