"""`ninfer-gate token`: a new local token instead of the one that was lost."""

import sys
from typing import Any

from ninfer_core.errors import CannotRead
from service.cli.failures import Task, guarded
from service.cli.settings import changed_settings
from service.settings import RECORDS_FILE


def token(changes: dict[str, Any]) -> int:
    """0 after the new token is printed; tokens and page sessions made before no longer open anything."""
    task = Task("token", "making a new token", "The token that was there still stands.")
    return guarded(task, lambda: _token(changes))


def _token(changes: dict[str, Any]) -> int:
    from service.auth import new_token
    from service.records.database import Database, head, revision

    settings = changed_settings(changes)
    database = Database(settings.records_url)
    try:
        # Making one would give a token that opens nothing but what was just made.
        if settings.database_url is None and not (settings.data / RECORDS_FILE).exists():
            raise CannotRead(f"there is no service in {settings.data}; name its folder with --data")
        if revision(database) != head():
            raise CannotRead(
                f"{database.address} has no tables of this version; `ninfer-gate serve` makes them"
            )
        made = new_token(database)
        print(f"A new token for {database.address}; the old one opens nothing any more:", file=sys.stderr)
        print(made)
    finally:
        database.close()
    return 0
