"""Recipes: documents that say what each object is made of, and the values that result, range by range."""

from ninfer_core.recipes.document import SCHEMA, Evidence, Recipe, load_recipe, parse_recipe
from ninfer_core.recipes.operations import OPERATIONS
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan, bind
from ninfer_core.recipes.rules import ENCODERS
from ninfer_core.recipes.values import CastRefused, Value

__all__ = [
    "ENCODERS",
    "OPERATIONS",
    "SCHEMA",
    "CastRefused",
    "Evidence",
    "Plan",
    "Recipe",
    "ResourcePlan",
    "TensorPlan",
    "Value",
    "bind",
    "load_recipe",
    "parse_recipe",
]
