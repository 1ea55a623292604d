"""Recipes: documents that say what each object is made of, and the values that result, range by range."""

from ninfer_core.recipes.binding import bind
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.recipes.claims import claims, relations
from ninfer_core.recipes.document import SCHEMA, Evidence, Recipe, load_recipe, parse_recipe
from ninfer_core.recipes.encoders import ENCODERS
from ninfer_core.recipes.operations import OPERATIONS
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan
from ninfer_core.recipes.producers import Bound, Producer
from ninfer_core.recipes.restrictions import Restriction
from ninfer_core.recipes.values import CastRefused, Value

__all__ = [
    "ENCODERS",
    "OPERATIONS",
    "SCHEMA",
    "Bound",
    "Bundle",
    "CastRefused",
    "Evidence",
    "Plan",
    "Producer",
    "Recipe",
    "ResourcePlan",
    "Restriction",
    "TensorPlan",
    "Value",
    "bind",
    "claims",
    "load_recipe",
    "parse_recipe",
    "relations",
]
