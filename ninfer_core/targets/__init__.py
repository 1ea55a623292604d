"""Targets: contracts of what an artifact of one identity holds, as data; six are registered, users bring their own."""

from ninfer_core.targets.choice import AUTO, NO_TARGET, Choice, artifact_inventory_sha256, choose, identity
from ninfer_core.targets.document import SCHEMA, load_target, parse_target
from ninfer_core.targets.registry import TARGETS, is_registered, recipe_ids, registered, registered_recipe
from ninfer_core.targets.target import Alias, ExpertView, Target, TargetObject, View

__all__ = [
    "AUTO",
    "NO_TARGET",
    "SCHEMA",
    "TARGETS",
    "Alias",
    "Choice",
    "ExpertView",
    "Target",
    "TargetObject",
    "View",
    "artifact_inventory_sha256",
    "choose",
    "identity",
    "is_registered",
    "load_target",
    "parse_target",
    "recipe_ids",
    "registered",
    "registered_recipe",
]
