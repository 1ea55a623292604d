"""Which source files a device's kernels are made of, as one digest: when it changes, so may their answers.

They are the modules of this package and what these take from others: a compiled kernel has the constants of another module
in it, and tables, planes and refused groups come from integers outside of the compiler.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final, Literal

DeviceClass = Literal["cpu", "cuda"]

# What lists, chooses or describes kernels computes nothing; what hands arguments on is not compiled.
_BESIDE: Final = ("registry.py", "devices.py", "sources.py", "failover.py")
_HANDING_ON: Final = ("host.py", "processor.py")
_TAKEN: Final = (
    "formats.py",
    "reconstruct.py",
    "words.py",
    "encoders/maxabs_bf16s.py",
    "encoders/maxabs_f16.py",
    "layouts/base.py",
    "layouts/block_scale.py",
    "layouts/row_split.py",
)


def source_files(device_class: DeviceClass) -> tuple[Path, ...]:
    """What kernels of a device class may be compiled of: `gpu*` are modules of the GPU alone."""
    folder = Path(__file__).parent
    own = (
        path
        for path in sorted(folder.glob("*.py"))
        if path.name not in (*_BESIDE, *_HANDING_ON)
        and (device_class == "cuda" or not path.name.startswith("gpu"))
    )
    return (*own, *(folder.parent / name for name in _TAKEN))


def digest_of(files: tuple[Path, ...]) -> str:
    """Sha256, bare, over names and bytes of files."""
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def sources_digest(device_class: DeviceClass) -> str:
    """Sha256, bare, over all that an answer of a device class goes through, as this process found it."""
    folder = Path(__file__).parent
    return digest_of((*source_files(device_class), *(folder / name for name in _HANDING_ON)))
