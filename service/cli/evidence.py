"""What self-checks of each kernel said on this machine, kept beside the compiled kernels; never proof for others."""

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ninfer_core.selfcheck.result import SelfCheck

_SCHEMA: Final = "ninfer-gate/kept-selfchecks/1"
_MOST: Final = 2_000  # outcomes that are kept: many times what one machine has


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome that stands under one key; `checked_at` is UTC, to the second."""

    key: str
    outcome: str
    level: str
    checked_at: str


def _file() -> Path | None:
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # no home directory can be told
        return None
    return Path(base) / "ninfer-gate" / "selfchecks.json"


def kept_outcomes() -> dict[str, Kept]:
    """What is kept, by key; nothing where the file is missing or not ours."""
    path = _file()
    if path is None:
        return {}
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != _SCHEMA:
            return {}
        return {one["key"]: Kept(**one) for one in document["outcomes"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _stands(former: Kept, new: Kept) -> bool:
    """Whether the former outcome says more: nothing is taken back by what was not checked, nor a full one by a quick pass."""
    if former.outcome == "not_checked":
        return False
    quick_pass = (new.outcome, new.level) == ("passed", "quick")
    return new.outcome == "not_checked" or (quick_pass and former.level == "full")


def keep(checks: Iterable[SelfCheck]) -> None:
    """Add the outcomes of self-checks; of two under one key the one that says more stands. Nothing where none can be written."""
    path = _file()
    if path is None:
        return
    outcomes = kept_outcomes()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for check in checks:
        for result in check.as_json()["kernels"]:
            former = outcomes.pop(result["key"], None)
            new = Kept(result["key"], result["outcome"], check.level, now)
            outcomes[new.key] = former if former is not None and _stands(former, new) else new
    last = [asdict(one) for one in outcomes.values()][-_MOST:]
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        temporary.write_text(json.dumps({"schema": _SCHEMA, "outcomes": last}), encoding="ascii")
        os.replace(temporary, path)
