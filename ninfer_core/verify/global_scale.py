"""The one field of an NVFP4 matrix that belongs to all its values: which word, and which direction."""

from fractions import Fraction

from ninfer_core.recipes.bundles import Bundle
from ninfer_core.verify.faults import Fault
from ninfer_core.words import BINARY32, finite_value, is_divisor, round_to


def compare(stored: int, derived: int, bundle: Bundle) -> list[Fault]:
    """The stored divisor word of a copied bundle against the derived one."""
    if stored == derived:
        return []
    have, want = f"0x{stored:08x}", f"0x{derived:08x}"
    where = {"stored": have, "derived": want}
    how = _direction(stored, derived, bundle)
    if how is None:
        message = f"stored divisor word {have}, the source gives {want}"
        return [Fault("parity.divisor_mismatch", 1, where, want, have, message)]
    divisor, expected = finite_value(BINARY32, stored), finite_value(BINARY32, derived)
    ratio = float(expected / divisor)
    message = (
        f"the divisor is {float(divisor):g} where {float(expected):g} is right: {how}; where codes and scales agree, "
        f"every value is {ratio:g} times the right one"
    )
    values = {"divisor": float(divisor), "expected_divisor": float(expected), "ratio": ratio}
    return [
        Fault(
            "parity.global_scale_direction",
            1,
            {**where, **values},
            f"{float(expected):g}",
            f"{float(divisor):g}",
            message,
        )
    ]


def _direction(stored: int, derived: int, bundle: Bundle) -> str | None:
    """In which way the field was turned round; None when it is simply another word."""
    if not (is_divisor(stored) and is_divisor(derived)):
        return None
    if any(part.source_word == stored for part in bundle.parts):
        return "the source's multiplier was stored as it is, not inverted"
    if stored == round_to(BINARY32, Fraction(1) / finite_value(BINARY32, derived)):
        return "the reciprocal was stored"
    return None
