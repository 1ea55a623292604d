"""The size function: from a type and the counts of a value alone, exact, checked against 64 bits (section 3)."""

from ninfer_core.schemes.structs.check import judge
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.layout import Laid
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.payload import check_multiple
from ninfer_core.schemes.structs.reach import reach


def laid_out(declared: Declared, limits: Limits = LIMITS) -> Laid:
    """The layout of a type that has no fault. Raises: StructFault."""
    faults = Faults()
    reached = reach(declared.declarations, declared.root, None, limits, faults)
    laid = judge(reached, declared.dims, limits, faults)
    faults.settle()
    if laid is None:
        raise ValueError("a type without a layout and without a fault")
    return laid


def size_bits(declared: Declared, limits: Limits = LIMITS) -> int:
    """The bits of a payload. Raises: StructFault."""
    return laid_out(declared, limits).bits


def size_bytes(declared: Declared, limits: Limits = LIMITS) -> int:
    """The bytes of a payload. Raises: StructFault, also where the bits do not fill them."""
    bits = size_bits(declared, limits)
    faults = Faults()
    check_multiple(bits, faults)
    faults.settle()
    return bits // 8
