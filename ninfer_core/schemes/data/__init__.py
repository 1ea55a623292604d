"""Published tables that schemes decode with: codebooks too large to write down as code. ORIGIN.md says where they are from."""

import io
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray


@cache
def tables(name: str) -> MappingProxyType[str, NDArray[Any]]:
    """The arrays of `<name>.npz` of this package, read-only."""
    content = resources.files(__package__).joinpath(f"{name}.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    for array in arrays.values():
        array.flags.writeable = False
    return MappingProxyType(arrays)
