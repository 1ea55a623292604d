"""What a recipe puts into a directory beside the objects: written by `convert`, expected by check `parity`."""

from typing import Any

from ninfer_core.containers.writer import Heading
from ninfer_core.recipes.document import Recipe


def heading(recipe: Recipe) -> Heading:
    """What the directory says beside its objects."""
    sections: dict[str, Any] = {}
    if recipe.metadata is not None:
        sections["metadata"] = dict(recipe.metadata)
    sections["provenance"] = {
        "recipe": {"recipe_id": recipe.recipe_id, "digest": recipe.digest},
        "identity": {"model_id": recipe.model_id, "weights_id": recipe.weights_id},
        "sources": {
            role: {"repository": source.repository, "revision": source.revision}
            for role, source in recipe.sources.items()
        },
    }
    components = dict(recipe.components) if recipe.components is not None else {"text": {"config": {}}}
    return Heading(recipe.model_id, recipe.weights_id, components, sections)
