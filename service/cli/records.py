"""The database of a service, for commands that work on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ninfer_core.errors import CannotRead
from service.cli.settings import changed_settings
from service.settings import RECORDS_FILE, Settings

if TYPE_CHECKING:
    from service.records.database import Database


def require_service(settings: Settings) -> None:
    """Raises: CannotRead where the folder is not one of a service. Opening it would make one in which nothing is."""
    if settings.database_url is None and not (settings.data / RECORDS_FILE).exists():
        raise CannotRead(
            f"there is no service in {settings.data}; name its folder with --data or NINFER_GATE_DATA"
        )


@contextmanager
def existing(changes: dict[str, Any]) -> Iterator["Database"]:
    """The records that the settings name; nothing is made. Raises: CannotRead, Usage."""
    from service.records.database import Database, head, revision

    settings = changed_settings(changes)
    require_service(settings)
    database = Database(settings.records_url)
    try:
        if revision(database) != head():
            raise CannotRead(
                f"{database.address} has no tables of this version; `ninfer-gate migrate` makes them"
            )
        yield database
    finally:
        database.close()
