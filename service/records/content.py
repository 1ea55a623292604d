"""What is held: contents, artifacts and their objects, checkpoints, recipes and encoder profiles, under one name."""

from service.records.artifacts import (
    add_artifact,
    add_blob,
    artifact,
    artifacts,
    doomed,
    files,
    find_artifact,
    find_blob,
    find_blobs,
    spare,
    unlisted,
)
from service.records.objects import add_objects, list_objects, object_at, objects
from service.records.sources import (
    add_checkpoint,
    add_recipe,
    checkpoint,
    checkpoint_files,
    checkpoints,
    profiles,
    recipe,
    recipes,
    recipes_called,
)

__all__ = [
    "add_artifact",
    "add_blob",
    "add_checkpoint",
    "add_objects",
    "add_recipe",
    "artifact",
    "artifacts",
    "checkpoint",
    "checkpoint_files",
    "checkpoints",
    "doomed",
    "files",
    "find_artifact",
    "find_blob",
    "find_blobs",
    "list_objects",
    "object_at",
    "objects",
    "profiles",
    "recipe",
    "recipes",
    "recipes_called",
    "spare",
    "unlisted",
]
