"""Compiled decoders of GGML block types, a kernel for each; `ninfer_core.schemes.ggml` has the plain ones they equal.

A kernel takes the bytes of blocks [n, bytes], a table, and the values [n, values] to fill. Products are normal numbers
whatever the scale, so no mode of the thread that flushes subnormal ones can alter them; MXFP4 multiplies nothing.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled import ggml_iq, ggml_k, ggml_small
from ninfer_core.schemes.compiled.spread import over_items, stored

if TYPE_CHECKING:
    from ninfer_core.schemes.ggml.block import Block

Array = NDArray[Any]
KERNELS: Final[Mapping[str, Callable[[Array, Array, Array], None]]] = (
    ggml_small.KERNELS | ggml_k.KERNELS | ggml_iq.KERNELS
)


def decode(block: "Block", payload: NDArray[np.uint8], table: Array) -> NDArray[np.float32]:
    """The values of a payload of whole blocks, flat, with the processors of this process.

    `table` is what the type looks up, [0] where nothing.
    """
    source, lookup = stored(payload).reshape(-1, block.bytes), stored(table)
    out = np.empty((len(source), block.values), np.float32)
    kernel = KERNELS[block.name]
    over_items(
        len(source), block.values, lambda start, stop: kernel(source[start:stop], lookup, out[start:stop])
    )
    return out.reshape(-1)
