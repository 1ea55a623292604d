"""Recipes: read whole before they are stored, known by the digest of their canonical document."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from ninfer_core import recipes as core
from ninfer_core.findings import Findings
from ninfer_core.targets import Target
from service import targets
from service.errors import RecipeFaulty, RecipeNotFound
from service.faulty import faulty
from service.parts import Parts
from service.records import content
from service.records.models import Recipe
from service.records.pages import Page
from service.records.types import now


@dataclass(frozen=True, slots=True)
class Draft:
    """A recipe without faults, and its text as it was sent."""

    recipe: core.Recipe
    text: bytes

    def row(self, project_id: str) -> Recipe:
        """Its row."""
        return Recipe(
            project_id=project_id,
            digest=self.recipe.digest,
            target_digest=None if self.recipe.target is None else self.recipe.target.digest,
            recipe_id=self.recipe.recipe_id,
            model_id=self.recipe.model_id,
            weights_id=self.recipe.weights_id,
            document=self.text.decode(),
            created_at=now(),
        )


def read(text: bytes, target: Target | None = None) -> Draft:
    """The recipe in a text, which fills `target` if one is given. Raises: RecipeFaulty with every finding."""
    findings = Findings()
    recipe = core.parse_recipe(text, findings, target=target)
    if recipe is None:
        raise faulty(RecipeFaulty, "recipe", findings)
    return Draft(recipe, text)


def push(parts: Parts, project_id: str, text: bytes, target_digest: str | None = None) -> tuple[Recipe, bool]:
    """The stored recipe, and whether it is new. Raises: RecipeFaulty, TargetNotFound."""
    target: Target | None = None
    if target_digest is not None:
        with parts.database.read() as session:
            target = targets.contract(session, project_id, target_digest)
        if target is None:
            raise targets.not_found(target_digest)
    draft = read(text, target)
    with parts.database.write() as session:
        return keep(session, project_id, draft)


def keep(session: Session, project_id: str, draft: Draft) -> tuple[Recipe, bool]:
    """Store a recipe, unless its digest is here: then the text that came first stays."""
    row = draft.row(project_id)
    new = content.add_recipe(session, row)
    return content.recipe(session, project_id, draft.recipe.digest) or row, new


def find(parts: Parts, project_id: str, digest: str) -> Recipe:
    """Raises: RecipeNotFound."""
    with parts.database.read() as session:
        recipe = content.recipe(session, project_id, digest)
    if recipe is None:
        raise RecipeNotFound(f"This project holds no recipe {digest}.")
    return recipe


def page(parts: Parts, project_id: str, *, limit: int, cursor: str | None) -> Page[Recipe]:
    """Newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        return content.recipes(session, project_id, limit=limit, cursor=cursor)
