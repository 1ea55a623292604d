"""`ninfer-gate backup` and `ninfer-gate restore`: a copy of the service in a folder, and a service of such a copy."""

import sys
from pathlib import Path
from typing import Any

from ninfer_core.errors import Usage
from service.cli.failures import Task, guarded
from service.cli.records import require_service
from service.cli.settings import changed_settings

EXIT_LEFT_OUT = 1


def backup(changes: dict[str, Any], to: Path, content: bool | None) -> int:
    """0 for a whole backup, 1 when content is missing or damaged, 2 for none."""
    task = Task("backup", "taking a backup", "The backup that was in the folder before still stands.")
    return guarded(task, lambda: _backup(changes, to, content))


def restore(changes: dict[str, Any], source: Path) -> int:
    """0 when all of the backup is there, 1 when content of it is damaged, 2 when there is no service of it."""
    task = Task("restore", "restoring a backup", "The database is empty as it was; begin again.")
    return guarded(task, lambda: _restore(changes, source))


def _backup(changes: dict[str, Any], to: Path, content: bool | None) -> int:
    from service import backup as copies
    from service.blobs import open_store

    settings = changed_settings(changes)
    require_service(settings)
    if to.resolve() == settings.data.resolve():
        raise Usage("the backup would lie in the service's own folder; name another one")
    # What is in a bucket, the bucket keeps: versions, replication, copies of its own.
    with_content = settings.store is None if content is None else content
    manifest = copies.backup(settings, open_store(settings), to, with_content, _tell)
    print(f"A backup of {manifest['at']} is in {to}.")
    return _judged(manifest["content"])


def _restore(changes: dict[str, Any], source: Path) -> int:
    from service import backup as copies
    from service.blobs import open_store

    settings = changed_settings(changes)
    if not (source / copies.MANIFEST).is_file():
        copies.read_manifest(source)  # says so before a folder is made for a service
    done = copies.restore(settings, open_store(settings), source, _tell)
    print(f"The service is as it was at {done['from']}; `ninfer-gate serve` starts it, open jobs begin anew.")
    return _judged(done["content"])


def _judged(content: dict[str, Any] | None) -> int:
    code = 0
    for what in ("missing", "damaged"):
        found = (content or {}).get(what, {"count": 0, "sha256": []})
        if found["count"]:
            code = EXIT_LEFT_OUT
            _tell(f"{found['count']:,} contents are {what} and left out: {', '.join(found['sha256'][:3])}")
    return code


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
