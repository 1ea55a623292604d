"""The target and the recipe that a job names: by digest, by identity or id, or as what the artifact itself stands for."""

from dataclasses import dataclass
from typing import Final

from ninfer_core import recipes as core
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.targets import AUTO, TARGETS, Target, choose, registered_recipe
from service import recipes, targets
from service.blobs import BlobFiles
from service.errors import Fault, Internal, ReferenceUnknown
from service.job_requests import Convert, Verify, unknown
from service.parts import Parts
from service.records import content
from service.records.targets import of_identity

_FEW: Final = 8


@dataclass(frozen=True, slots=True)
class Named:
    """What a job calls its target, as rows keep it: a digest, `auto` or nothing; `contract` is what the digest says."""

    name: str | None = None
    contract: Target | None = None


def named_target(parts: Parts, project_id: str, request: Verify | Convert) -> Named:
    """Only a verification has an artifact that could name its target itself. Raises: ReferenceUnknown."""
    name = request.target
    if name is None or (name == AUTO and isinstance(request, Verify)):
        return Named(name)
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
    """A digest, or the text of a document; the registered recipe where the job says its id or `auto`.

    None also where `auto` finds none for the artifact of a verification. Raises: ReferenceUnknown.
    """
    given = request.recipe
    if given is None or isinstance(given, bytes) or given.startswith(DIGEST_PREFIX):
        return given
    if given == AUTO and isinstance(request, Verify):
        target = _own_target(parts, project_id, request.artifact)
        return registered_recipe(target.recipe_id) if target is not None and target.recipe_id else None
    text = registered_recipe(given)
    if text is None:
        raise unknown("recipe", given, "$.recipe")
    return text


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
    """The registered target that the artifact's directory stands for, whether it was listed before or not.

    Raises: ReferenceUnknown.
    """
    with parts.database.read() as session:
        artifact = content.find_artifact(session, project_id, digest)
        if artifact is None:
            raise unknown("artifact", digest, "$.artifact")
        names = {file.name: file.sha256 for file in content.files(session, artifact.id)}
    if artifact.kind != "ninfer":
        detail = f"{AUTO} needs a .ninfer artifact, whose identity names the recipe"
        raise ReferenceUnknown(f"The recipe {detail}.", Fault("body", "$.recipe", detail))
    files = BlobFiles(parts.blobs, names)
    try:
        directory = read_artifact(files, artifact.entry, Findings())
    except NinferError:
        return None
    finally:
        files.close()
    return None if directory is None else choose(TARGETS, directory).target
