"""How much memory this process may still take, as the system tells it."""

from pathlib import Path
from typing import Final

_MEMINFO: Final = Path("/proc/meminfo")
_GROUP: Final = Path("/sys/fs/cgroup")


class TooLittleMemory(MemoryError):
    """A question that needs more memory than there is."""


def available_memory() -> int | None:
    """Bytes, of the machine and of a limit that holds for this group of processes; None where nothing tells."""
    found = [number for number in (_of_machine(), _of_group()) if number is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    try:
        limit = (_GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_GROUP / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return max(0, int(limit) - used) if limit.isdecimal() else None


def require_memory(written: int) -> None:
    """Raise TooLittleMemory unless so many bytes, and some to spare, can be written."""
    here = available_memory()
    wanted = written + (1 << 30)
    if here is None or here < wanted:
        have = "how much there is cannot be told" if here is None else f"there are {here / 1e9:.1f}"
        raise TooLittleMemory(
            f"not checked beyond 2**31 elements: that takes {wanted / 1e9:.1f} GB of memory, and {have}"
        )
