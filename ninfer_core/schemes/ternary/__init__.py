"""Schemes of one, two or three levels (and ParetoQ's up to sixteen), as checkpoints hold them (5.7, 5.9, 5.25)."""

from typing import Final

from ninfer_core.schemes.form import Form
from ninfer_core.schemes.ternary.binary import BINARY_XNOR
from ninfer_core.schemes.ternary.bitnet_hf import BITNET_HF
from ninfer_core.schemes.ternary.bitnet_i2_s import BITNET_I2_S
from ninfer_core.schemes.ternary.paretoq import PARETOQ

FORMS: Final[tuple[Form, ...]] = (BITNET_HF, BITNET_I2_S, PARETOQ, BINARY_XNOR)
