"""What holds the bytes of a payload; a module of its own, so that sizes and places need no numpy."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
