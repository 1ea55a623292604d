"""`ninfer-gate token`: a new local token instead of the one that was lost."""

from typing import Any

from service.cli.failures import Task, guarded
from service.cli.settings import changed_settings


def token(changes: dict[str, Any]) -> int:
    """0 after the new token is printed; tokens and page sessions made before no longer open anything."""
    task = Task("token", "making a new token", "The token that was there still stands.")
    return guarded(task, lambda: _token(changes))


def _token(changes: dict[str, Any]) -> int:
    from service.auth import new_token
    from service.records.database import Database, migrate

    settings = changed_settings(changes)
    migrate(settings.records_url)
    database = Database(settings.records_url)
    try:
        print(new_token(database))
    finally:
        database.close()
    return 0
