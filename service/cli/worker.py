"""`ninfer-gate worker`: this process becomes a worker."""

import os
from typing import Any, NoReturn

from service.cli.failures import Task, guarded
from service.cli.settings import changed_settings
from service.supervisor import WORKER


def worker(changes: dict[str, Any]) -> int:
    """2 when the settings are not right; else the worker's own exit code is this process's."""
    task = Task("worker", "starting the worker", "Jobs go on when a worker is started again.")
    return guarded(task, lambda: _become(changes))


def _become(changes: dict[str, Any]) -> NoReturn:
    settings = changed_settings(changes)
    # Not a child: signals reach the worker itself, and nothing stands between it and who started it.
    os.execve(WORKER[0], WORKER, {**os.environ, **settings.environment()})  # noqa: S606  our own interpreter
