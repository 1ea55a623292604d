"""Where the files of tests lie: in memory where there is room, since the suite waits for the disk longer than it works.

A database commits some ten thousand times here, and a disk takes a few milliseconds for each. Workers are killed, machines
are not: what a killed process had written is there all the same, on any file system.
"""

import os
import shutil
from pathlib import Path

_FOLDER = Path("/dev/shm")  # noqa: S108  a file system in memory, where there is one
_ROOM = 4 << 30  # several times what a run of the suite ever holds


def folder() -> Path | None:
    """A folder in memory with room for a run, where programs may be started; None when there is none."""
    try:
        if os.statvfs(_FOLDER).f_flag & os.ST_NOEXEC or shutil.disk_usage(_FOLDER).free < _ROOM:
            return None
        facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    except OSError:
        return None
    available_bytes = int(facts["MemAvailable"].removesuffix("kB")) << 10
    return _FOLDER if available_bytes >= 2 * _ROOM and os.access(_FOLDER, os.W_OK) else None
