"""`ninfer-gate project`: projects made, listed, bounded and deleted on the database itself."""

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from ninfer_core.errors import Usage
from service.cli.failures import Task, guarded
from service.cli.output import PROJECTS_SCHEMA, JsonTarget, json_target
from service.cli.records import existing
from service.text import UNKNOWN, clean, number, size

if TYPE_CHECKING:
    from service.records.models import Project

_NONE: Final = "none"
_SIZE: Final = re.compile(r"([0-9]{1,18})\s*(|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_UNITS: Final = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
}


def add(changes: dict[str, Any], name: str, quota: str | None, running: str | None) -> int:
    """0 after there is such a project."""
    task = Task("project add", "making a project", "No project was made.")
    return guarded(task, lambda: _add(changes, name, _bounds(quota, running)))


def list_projects(changes: dict[str, Any], json: str | None) -> int:
    """0 after they are listed."""
    task = Task("project list", "listing the projects", "Nothing was changed.")
    return guarded(task, lambda: _list(changes, json_target(json)))


def change(changes: dict[str, Any], name: str, quota: str | None, running: str | None) -> int:
    """0 after its bounds are these."""
    task = Task("project set", "changing a project", "Its bounds are as they were.")
    return guarded(task, lambda: _change(changes, name, _bounds(quota, running)))


def delete(changes: dict[str, Any], name: str, confirm: str | None) -> int:
    """0 after nothing opens it any more."""
    task = Task(
        "project delete", "deleting a project", "It is there unless the command said that it is deleted."
    )
    return guarded(task, lambda: _delete(changes, name, confirm))


def _add(changes: dict[str, Any], name: str, bounds: dict[str, int | None]) -> int:
    from service import projects

    with existing(changes) as database:
        made = projects.add(database, name, projects.Bounds(**bounds))
    print(f"Project {made.name} is there. `ninfer-gate token create --project {made.name}` opens it.")
    return 0


def _list(changes: dict[str, Any], target: JsonTarget | None) -> int:
    from service import projects
    from service.cli.screen import aligned, console

    with existing(changes) as database:
        found = projects.listed(database)
    if target is not None:
        target.write({"schema": PROJECTS_SCHEMA, "projects": [_document(project) for project in found]})
        if target.alone:
            return 0
    table = [("project", "quota", "running jobs", "made", "state"), *map(_line, found)]
    out = console()
    for index, line in enumerate(aligned(table, (False, True, True, False, False), gap=2)):
        out.print(f"  {line}", style="dim" if index == 0 else None)
    return 0


def _change(changes: dict[str, Any], name: str, bounds: dict[str, int | None]) -> int:
    from service import projects

    if not bounds:
        raise Usage("say what to change: --quota or --max-running-jobs")
    with existing(changes) as database:
        made = projects.change(database, name, bounds)
    _, quota, running, *_ = _line(made)
    print(f"Project {made.name}: quota {quota}, running jobs {running}.")
    return 0


def _delete(changes: dict[str, Any], name: str, confirm: str | None) -> int:
    from service import auth, projects, retention
    from service.errors import ServiceError

    with existing(changes) as database:
        found = projects.named(database, name)
        if confirm is None:
            if not sys.stdin.isatty():
                raise Usage("nobody is there to be asked: say the name once more with --confirm")
            print(f"Everything that {found.name} holds will be gone, evidence included.", file=sys.stderr)
            try:
                confirm = input("Its name once more: ")
            except EOFError:
                raise Usage("its name was not said once more") from None
        try:
            retention.delete_project(database, found.id, confirm=confirm.strip(), actor=auth.COMMAND_LINE)
        except ServiceError as error:
            raise Usage(error.detail) from None
    print(f"Nothing opens {found.name} any more. Workers remove what it holds.")
    return 0


def _bounds(quota: str | None, running: str | None) -> dict[str, int | None]:
    """The bounds that were given. Raises: Usage."""
    found: dict[str, int | None] = {}
    if quota is not None:
        found["quota_bytes"] = None if quota == _NONE else _bytes(quota)
    if running is not None:
        if running != _NONE and not re.fullmatch(r"[0-9]{1,9}", running):
            raise Usage("--max-running-jobs takes a number, or none")
        found["max_running_jobs"] = None if running == _NONE else int(running)
    return found


def _bytes(text: str) -> int:
    matched = _SIZE.fullmatch(text)
    if matched is None:
        raise Usage("--quota takes a number of bytes, such as 500GB or 2TiB, or none")
    return int(matched[1]) * int(_UNITS[matched[2]])


def _line(project: "Project") -> tuple[str, ...]:
    return (
        clean(project.name),
        UNKNOWN if project.quota_bytes is None else size(project.quota_bytes),
        number(project.max_running_jobs),
        f"{project.created_at:%Y-%m-%d}",
        "" if project.deleted_at is None else "being deleted",
    )


def _document(project: "Project") -> dict[str, Any]:
    return {
        "name": project.name,
        "quota_bytes": project.quota_bytes,
        "max_running_jobs": project.max_running_jobs,
        "created_at": project.created_at.isoformat(),
        "deleted_at": None if project.deleted_at is None else project.deleted_at.isoformat(),
    }
