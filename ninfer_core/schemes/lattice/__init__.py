"""File forms of the schemes whose codes are points of codebooks, lattices and trellises, or of mixed widths."""

from typing import Final

from ninfer_core.schemes.form import Form
from ninfer_core.schemes.lattice.aqlm import AQLM
from ninfer_core.schemes.lattice.exl2 import EXL2
from ninfer_core.schemes.lattice.exl3 import EXL3
from ninfer_core.schemes.lattice.quip import QUIP_SHARP_E8P
from ninfer_core.schemes.lattice.spqr import SPQR

FORMS: Final[tuple[Form, ...]] = (AQLM, EXL2, EXL3, QUIP_SHARP_E8P, SPQR)
