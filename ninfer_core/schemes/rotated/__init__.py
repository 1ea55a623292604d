"""Integer schemes whose weights were smoothed, rotated or reordered, as checkpoints hold them (5.22, 5.24)."""

from typing import Final

from ninfer_core.schemes.form import Form
from ninfer_core.schemes.rotated.eetq import EETQ
from ninfer_core.schemes.rotated.quarot import QUAROT
from ninfer_core.schemes.rotated.smoothquant import SMOOTHQUANT

FORMS: Final[tuple[Form, ...]] = (EETQ, SMOOTHQUANT, QUAROT)
