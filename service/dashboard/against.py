"""What runs and conversions are held against, in a few words for lists: recipe, target, sample, order."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.orm import Session

from ninfer_core.targets import AUTO
from service import targets
from service.dashboard.format import clipped, figure, short_digest
from service.records import views
from service.records.models import Conversion, Run

_WIDTH = 60


def against(
    session: Session, project_id: str, rows: Iterable[Run | Conversion]
) -> dict[str, tuple[str, ...]]:
    """By the id of each job."""
    listed = list(rows)
    recipes = views.recipe_ids(
        session, project_id, {row.recipe_digest for row in listed if row.recipe_digest}
    )
    digests = {digest for row in listed if (digest := _target(row)) is not None and digest != AUTO}
    names = targets.names(session, project_id, digests)
    return {row.job_id: tuple(_words(row, recipes, names)) for row in listed}


def _target(row: Run | Conversion) -> str | None:
    """The digest of what it was held against; before that is known, what was asked for."""
    return row.target_digest or (row.target if isinstance(row, Run) else None)


def _words(row: Run | Conversion, recipes: Mapping[str, str], names: Mapping[str, str]) -> Sequence[str]:
    said = []
    if row.recipe_digest and isinstance(row, Run):
        known = recipes.get(row.recipe_digest) or short_digest(row.recipe_digest)
        said.append(f"recipe {clipped(known, _WIDTH)}")
    target = _target(row)
    if target is not None:
        known = target if target == AUTO else names.get(target) or short_digest(target)
        said.append(f"target {clipped(known, _WIDTH)}")
    if isinstance(row, Run):
        if row.sample is not None:
            said.append(f"sample {figure(100 * row.sample['fraction'], '.3g')} %")
        if row.canonical:
            said.append("canonical")
        if row.full:
            said.append("nothing reused")
    return said
