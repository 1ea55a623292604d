"""Queries over what conversions and proofs read: checkpoints, recipes and encoder profiles."""

from collections.abc import Sequence

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from service.records.models import Checkpoint, CheckpointFile, EncoderProfile, Project, Recipe
from service.records.pages import Page, cut, decode, encode, fetched, identifier, moment
from service.records.rows import insert_new, values

_CHECKPOINTS = "checkpoints"
_RECIPES = "recipes"


def add_checkpoint(
    session: Session, checkpoint: Checkpoint, files: Sequence[CheckpointFile]
) -> tuple[Checkpoint, bool]:
    """The stored checkpoint, and whether it is new: one with the same content and the same claims stands as it is.

    The files are numbered in the order given.
    """
    # Claims have any length and may be missing, so no index can keep them apart; the project's row does, for a moment.
    session.get(Project, checkpoint.project_id, with_for_update={"key_share": True}, populate_existing=True)
    same = select(Checkpoint).where(
        Checkpoint.project_id == checkpoint.project_id,
        Checkpoint.digest == checkpoint.digest,
        Checkpoint.repository.is_not_distinct_from(checkpoint.repository),
        Checkpoint.revision.is_not_distinct_from(checkpoint.revision),
        Checkpoint.license.is_not_distinct_from(checkpoint.license),
    )
    known = session.scalars(same).first()
    if known is not None:
        return known, False
    insert_new(session, Checkpoint, [values(checkpoint)])
    owner = {"checkpoint_id": checkpoint.id, "project_id": checkpoint.project_id}
    rows = [{**values(file), **owner, "ordinal": ordinal} for ordinal, file in enumerate(files)]
    insert_new(session, CheckpointFile, rows)
    return session.scalars(same).one(), True


def checkpoint(session: Session, project_id: str, checkpoint_id: str) -> Checkpoint | None:
    """The checkpoint with an id."""
    query = select(Checkpoint).where(Checkpoint.project_id == project_id, Checkpoint.id == checkpoint_id)
    return session.scalars(query).one_or_none()


def checkpoint_files(session: Session, checkpoint_id: str) -> list[CheckpointFile]:
    """The files of a checkpoint, in order."""
    query = select(CheckpointFile).where(CheckpointFile.checkpoint_id == checkpoint_id)
    return list(session.scalars(query.order_by(CheckpointFile.ordinal)))


def checkpoints(
    session: Session, project_id: str, *, limit: int, cursor: str | None = None
) -> Page[Checkpoint]:
    """Checkpoints, newest first. Raises: BadCursor."""
    query = select(Checkpoint).where(Checkpoint.project_id == project_id)
    after = decode(cursor, _CHECKPOINTS, identifier)
    if after is not None:
        query = query.where(Checkpoint.id < after[0])
    rows = session.scalars(query.order_by(Checkpoint.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_CHECKPOINTS, row.id))


def add_recipe(session: Session, recipe: Recipe) -> bool:
    """Store a recipe; False when the project has it already."""
    return insert_new(session, Recipe, [values(recipe)]) == 1


def recipe(session: Session, project_id: str, digest: str) -> Recipe | None:
    """The recipe with a digest."""
    return session.get(Recipe, (project_id, digest))


def recipes(session: Session, project_id: str, *, limit: int, cursor: str | None = None) -> Page[Recipe]:
    """Recipes, newest first. Raises: BadCursor."""
    query = select(Recipe).where(Recipe.project_id == project_id)
    after = decode(cursor, _RECIPES, moment, identifier)
    if after is not None:
        query = query.where(tuple_(Recipe.created_at, Recipe.digest) < after)
    newest = query.order_by(Recipe.created_at.desc(), Recipe.digest.desc())
    rows = session.scalars(newest.limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_RECIPES, row.created_at.isoformat(), row.digest))


def recipes_called(session: Session, project_id: str, recipe_id: str, limit: int) -> list[str]:
    """Digests of recipes that call themselves so, the newest first."""
    query = select(Recipe.digest).where(Recipe.project_id == project_id, Recipe.recipe_id == recipe_id)
    return list(session.scalars(query.order_by(Recipe.created_at.desc(), Recipe.digest).limit(limit)))


def profiles(session: Session) -> list[EncoderProfile]:
    """Every encoder profile that was ever held here."""
    query = select(EncoderProfile).order_by(EncoderProfile.name, EncoderProfile.version)
    return list(session.scalars(query))
