"""The block types by name."""

from typing import Final

from ninfer_core.registry import Closed
from ninfer_core.schemes.ggml.block import Block
from ninfer_core.schemes.ggml.iq_types import IQ
from ninfer_core.schemes.ggml.k_quants import K_QUANTS
from ninfer_core.schemes.ggml.plain import PLAIN
from ninfer_core.schemes.ggml.ternary import TERNARY

BLOCKS: Final[Closed[Block]] = Closed("GGML block type", *PLAIN, *K_QUANTS, *IQ, *TERNARY)
"""The 25 types of the scheme specification, section 4 and BF16, and STQ1_0."""
