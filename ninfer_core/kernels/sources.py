"""Which source files a device's kernels are made of, as one digest: when it changes, so may their answers."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final, Literal

DeviceClass = Literal["cpu", "cuda"]

# What lists, chooses or describes kernels computes nothing.
_BESIDE: Final = ("registry.py", "devices.py", "sources.py", "processor.py", "host.py", "failover.py")


def source_files(device_class: DeviceClass) -> tuple[Path, ...]:
    """The modules of this package that kernels of a device class may use, by name: those of the GPU, `gpu*`, its own."""
    return tuple(
        path
        for path in sorted(Path(__file__).parent.glob("*.py"))
        if path.name not in _BESIDE and (device_class == "cuda" or not path.name.startswith("gpu"))
    )


def digest_of(files: tuple[Path, ...]) -> str:
    """Sha256, bare, over names and bytes of files."""
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def sources_digest(device_class: DeviceClass) -> str:
    """Sha256, bare, over the sources of a device class, as this process found them."""
    return digest_of(source_files(device_class))
