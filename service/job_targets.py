"""The target and the recipe that a job names: by digest, by identity or id, or as what the artifact itself stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from ninfer_core import recipes as core
from ninfer_core.containers.directory import Artifact as Directory
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.targets import (
    AUTO,
    TARGETS,
    Target,
    artifact_inventory_sha256,
    choose,
    identity,
    registered_recipe,
)
from service import recipes, targets
from service.blobs import BlobFiles, StoreAway
from service.errors import Fault, Internal, ReferenceUnknown
from service.job_requests import Convert, Verify, unknown
from service.parts import Parts
from service.records import content
from service.records.models import Artifact
from service.records.targets import of_identity, of_inventory

_FEW: Final = 8


@dataclass(frozen=True, slots=True)
class Named:
    """What a job calls its target, as rows keep it: a digest, `auto` or nothing; `contract` is what the digest says."""

    name: str | None = None
    contract: Target | None = None


def named_target(parts: Parts, project_id: str, request: Verify | Convert) -> Named:
    """Only a verification has an artifact that could name its target itself.

    `auto` stays where that picks a registered one, or none; a stored one is named by its digest from here on, so that
    all workers mean the same one whatever is stored meanwhile. Raises: ReferenceUnknown.
    """
    name = request.target
    if name is None:
        return Named()
    if name == AUTO and isinstance(request, Verify):
        contract = _stored_target(parts, project_id, request.artifact)
        return Named(AUTO) if contract is None else Named(contract.digest, contract)
    with parts.database.read() as session:
        if name.startswith(DIGEST_PREFIX):
            contract = targets.contract(session, project_id, name)
            if contract is None:
                raise unknown("target", name, "$.target")
            return Named(name, contract)
        digests = [target.digest for target in TARGETS if target.identity == name]
        model_id, _, weights_id = name.partition("/")
        if not digests:
            digests = [row.digest for row in of_identity(session, project_id, model_id, weights_id, _FEW)]
        if len(digests) > 1:
            detail = f"{len(digests)} targets are called {name}: name one by its digest"
            raise ReferenceUnknown(f"{detail}.", Fault("body", "$.target", ", ".join(digests)))
        if not digests:
            raise unknown("target", name, "$.target")
        return Named(digests[0], targets.contract(session, project_id, digests[0]))


def recipe_of(parts: Parts, project_id: str, request: Verify | Convert) -> str | bytes | None:
    """A digest, or the text of a document; the registered recipe where the job says its id or `auto`, else the stored one.

    An id means a stored recipe only where no registered one and just one stored one has it. None also where `auto` finds none for the artifact of a verification. Raises: ReferenceUnknown.
    """
    given = request.recipe
    if given is None or isinstance(given, bytes) or given.startswith(DIGEST_PREFIX):
        return given
    if given == AUTO and isinstance(request, Verify):
        target = _own_target(parts, project_id, request.artifact)
        return registered_recipe(target.recipe_id) if target is not None and target.recipe_id else None
    text = registered_recipe(given)
    if text is not None or given == AUTO:
        return text if text is not None else _no_recipe(given)
    with parts.database.read() as session:
        digests = content.recipes_called(session, project_id, given, _FEW)
    if len(digests) > 1:
        detail = f"{len(digests)} stored recipes are called {given}: name one by its digest"
        raise ReferenceUnknown(f"{detail}.", Fault("body", "$.recipe", ", ".join(digests)))
    return digests[0] if digests else _no_recipe(given)


def _no_recipe(name: str) -> NoReturn:
    raise unknown("recipe", name, "$.recipe")


def stored_recipe(parts: Parts, project_id: str, digest: str, target: Target | None) -> core.Recipe:
    """The recipe that a job names, read outside of any transaction; it fills `target`, else the one it was stored with.

    Raises: ReferenceUnknown, RecipeFaulty when it does not fill that target.
    """
    with parts.database.read() as session:
        row = content.recipe(session, project_id, digest)
        if row is None:
            raise unknown("recipe", digest, "$.recipe")
        own = targets.contract(session, project_id, row.target_digest) if row.target_digest else None
    if target is not None:
        return recipes.read(row.document.encode(), target).recipe
    recipe = core.parse_recipe(row.document.encode(), Findings(), target=own)
    if recipe is None:
        raise Internal(f"The stored recipe {digest} can no longer be read.")
    return recipe


def _own_target(parts: Parts, project_id: str, digest: str) -> Target | None:
    """The registered target that the artifact's directory stands for. Raises: ReferenceUnknown."""
    artifact, names = _artifact(parts, project_id, digest)
    if artifact.kind != "ninfer":
        detail = f"{AUTO} needs a .ninfer artifact, whose identity names the recipe"
        raise ReferenceUnknown(f"The recipe {detail}.", Fault("body", "$.recipe", detail))
    directory = _directory(parts, artifact, names)
    return None if directory is None else choose(TARGETS, directory).target


def _stored_target(parts: Parts, project_id: str, digest: str) -> Target | None:
    """The stored target that the artifact's directory stands for; None where that is a registered one, or there is none.

    Raises: ReferenceUnknown.
    """
    artifact, names = _artifact(parts, project_id, digest)
    directory = _directory(parts, artifact, names) if artifact.kind == "ninfer" else None
    if directory is None:
        return None
    with parts.database.read() as session:
        if directory.revision > 2:
            rows = of_inventory(session, project_id, artifact_inventory_sha256(directory) or "", _FEW)
        else:
            model_id, weights_id = identity(directory)
            rows = of_identity(session, project_id, model_id or "", weights_id or "", _FEW)
        stored = {row.digest: targets.contract(session, project_id, row.digest) for row in rows}
    own = choose(TARGETS, directory)
    known = [own.target, *own.others, *stored.values()]
    chosen = choose([target for target in known if target is not None], directory).target
    return None if chosen is None else stored.get(chosen.digest)


def _artifact(parts: Parts, project_id: str, digest: str) -> tuple[Artifact, dict[str, str]]:
    """An artifact with the sha256 of its files by their names. Raises: ReferenceUnknown."""
    with parts.database.read() as session:
        artifact = content.find_artifact(session, project_id, digest)
        if artifact is None:
            raise unknown("artifact", digest, "$.artifact")
        return artifact, {file.name: file.sha256 for file in content.files(session, artifact.id)}


def _directory(parts: Parts, artifact: Artifact, names: Mapping[str, str]) -> Directory | None:
    """Its directory, whether it was listed before or not; None where that cannot be read. Raises: StoreAway."""
    files = BlobFiles(parts.blobs, names)
    try:
        return read_artifact(files, artifact.entry, Findings())
    except StoreAway:
        raise  # another target would be chosen than when it answers
    except NinferError:
        return None
    finally:
        files.close()
