"""The conventions that GPTQ's and bitsandbytes' labels hide: zero points less one or not, which nibble comes first."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ninfer_core.schemes.dialects import Confidence, Dialect, Likely
from ninfer_core.schemes.form import Params, Parts, Shape, Values
from ninfer_core.schemes.integer.bitsandbytes import BNB_FP4, BNB_NF4
from ninfer_core.schemes.integer.gptq import GPTQ, GPTQ_V2, stored_zeros
from ninfer_core.schemes.integer.tables import FP4_TABLE, NF4_TABLE, halves, zero_code

_MOSTLY: Final = 0.9  # of the zero points, for a weak word about the convention
_OFFSETS: Final = {GPTQ.name: 1, GPTQ_V2.name: 0}  # from the stored zero point to the real one


def _gptq_stated(form: str, _params: Params) -> str:
    return form


def _gptq_read(_form: str, convention: str, parts: Parts, shape: Shape, params: Params) -> Values:
    form = GPTQ if convention == GPTQ.name else GPTQ_V2
    return (form.fast or form.decode)(parts, shape, params)


def _gptq_content(stated: str, parts: Parts, _shape: Shape, params: Params) -> Likely | None:
    """A symmetric scheme has the zero point 2^(bits-1) everywhere: what is stored in its place says the convention."""
    zeros = stored_zeros(parts, params)
    if not zeros.size:
        return None
    middle = 1 << params["bits"] - 1
    other = next(name for name in _OFFSETS if name != stated)
    fitting = float(np.mean(zeros == middle - _OFFSETS[other]))
    if fitting < _MOSTLY:
        return None
    confidence: Confidence = "strong" if fitting == 1 and params["symmetric"] else "weak"
    read, stored = middle - _OFFSETS[other] + _OFFSETS[stated], middle - _OFFSETS[other]
    scheme = "a symmetric scheme has" if params["symmetric"] else "most schemes have"
    return Likely(
        other,
        confidence,
        f"{fitting:.0%} of the zero points are stored as {stored}, read as {read} where {scheme} {middle}",
    )


def _nibbles_stated(_form: str, params: Params) -> str:
    first: str = params["first_nibble"]
    return first


def _nibbles_read(form: str, convention: str, parts: Parts, shape: Shape, params: Params) -> Values:
    decode = (BNB_NF4 if form == BNB_NF4.name else BNB_FP4).decode
    return decode(parts, shape, {**params, "first_nibble": convention})


def _nibbles_content(stated: str, parts: Parts, shape: Shape, _params: Params) -> Likely | None:
    """An odd number of values leaves a nibble of the last byte unused, and writers put 0 or the code of 0 there."""
    if not math.prod(shape) % 2:
        return None
    value, unused = halves(parts["payload"], stated)
    nothing = (0, zero_code(NF4_TABLE), zero_code(FP4_TABLE))
    if unused in nothing or value not in nothing:
        return None
    other = "low" if stated == "high" else "high"
    return Likely(
        other, "weak", "the half of the last byte that should hold no value does, the other does not"
    )


def _closed(**meanings: str) -> Mapping[str, str]:
    return MappingProxyType(meanings)


GPTQ_ZERO_POINTS: Final = Dialect(
    "GPTQ zero points",
    (GPTQ.name, GPTQ_V2.name),
    "qzeros",
    _closed(gptq="zero points stored less one", gptq_v2="zero points stored as they are"),
    _gptq_stated,
    _gptq_read,
    _gptq_content,
)
NIBBLE_ORDER: Final = Dialect(
    "order of nibbles",
    (BNB_NF4.name, BNB_FP4.name),
    "payload",
    _closed(
        high="the first value in the high half of a byte", low="the first value in the low half of a byte"
    ),
    _nibbles_stated,
    _nibbles_read,
    _nibbles_content,
)
