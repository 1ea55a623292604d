"""ParetoQ: the method's levels times a learned factor for each row; no packed release exists."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Values
from ninfer_core.schemes.run import refuse_parameter, refuse_shape
from ninfer_core.schemes.scales import divided, finite_source, largest, sound_scales

_NAME: Final = "paretoq"
_TERNARY: Final = 0  # what the tool calls w_bits 0
_CLIP: Final = np.float32(0.99)
STEPS: Final[Mapping[int, tuple[float, float]]] = {_TERNARY: (1.5, 0.0), 2: (2.0, 0.5)}  # levels n, offset h


def levels_of(w_bits: int) -> Values:
    """The levels that the method has: half steps for two bits, a sign for one, integers for the others."""
    if w_bits == _TERNARY:
        return np.array([-1, 0, 1], np.float32)
    if w_bits == 1:
        return np.array([-1, 1], np.float32)
    if w_bits == 2:
        return np.array([-1.5, -0.5, 0.5, 1.5], np.float32)
    half = 1 << (w_bits - 1)
    return np.arange(-half, half).astype(np.float32)


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2:
        raise refuse_shape(_NAME, shape, "[out, in]")
    return {"levels": shape, "alpha": (shape[0], 1)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    if len(stored.get("levels", ())) != 2:
        raise refuse_shape(_NAME, stored.get("levels", ()), "levels [out, in]")
    return stored["levels"]


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Level over the number of steps, then times alpha, in binary32 (5.25); one, three and four bits have no steps."""
    levels, alpha = parts["levels"], parts["alpha"]
    if params["w_bits"] in STEPS:
        levels = levels / np.float32(STEPS[params["w_bits"]][0])
    scaled: Values = levels * alpha
    return scaled


def encode(values: Values, params: Params) -> dict[str, Array]:
    """The method's own rule, half to even; without `alpha` each row takes the factor that training starts from.

    Raises: CannotEncode for values that are not finite, SchemeRefused for another number of factors than rows.
    """
    finite_source(_NAME, values)
    w_bits: int = params["w_bits"]
    alpha = _factors(values, w_bits, params["alpha"])
    if w_bits == 1:
        return {"levels": np.where(values >= 0, np.float32(1), np.float32(-1)), "alpha": alpha}
    quotients = divided(values, np.broadcast_to(alpha, values.shape))
    if w_bits in STEPS:
        steps, offset = (np.float32(number) for number in STEPS[w_bits])
        levels = np.rint(np.clip(quotients, -_CLIP, _CLIP) * steps - offset) + offset
    else:
        half = 1 << (w_bits - 1)
        levels = np.clip(np.rint(quotients), -half, half - 1)
    return {"levels": levels.astype(np.float32), "alpha": alpha}


def _factors(values: Values, w_bits: int, given: tuple[float, ...]) -> Values:
    if given:
        if len(given) != values.shape[0]:
            raise refuse_parameter(_NAME, "alpha", f"a factor for each of {values.shape[0]} rows", len(given))
        factors = np.array(given, np.float64).astype(np.float32).reshape(-1, 1)
        if not np.all(np.isfinite(factors) & (factors > 0)):
            raise refuse_parameter(_NAME, "alpha", "finite binary32 factors above zero", list(given))
        return factors
    if w_bits == 1:
        mean = np.mean(np.abs(values), axis=1, keepdims=True, dtype=np.float64)
        return np.asarray(mean, np.float32)
    top = largest(values, 1)
    return top if w_bits in STEPS else np.asarray(top / np.float32((1 << (w_bits - 1)) - 1), np.float32)


def _levels_exist(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    known = levels_of(params["w_bits"])
    levels = parts["levels"]
    expected = ", ".join(f"{level:g}" for level in known)
    report(
        findings, "code_illegal", "levels", ~np.isin(levels, known), levels, "holds other levels", expected
    )


PARETOQ: Final = Form(
    name=_NAME,
    kind="file",
    summary="Levels of ParetoQ, unpacked, times a factor for each row.",
    axes=("out", "in"),
    parts=(
        Part("levels", ("float32",), "[O, I]", "the level of each value"),
        Part("alpha", ("float32",), "[O, 1]", "the learned factor of each row"),
    ),
    parameters=(
        Parameter(
            "w_bits", "integer", "bits of a level as the tool counts them; 0 is ternary", 2, (0, 1, 2, 3, 4)
        ),
        Parameter(
            "alpha",
            "numbers",
            "for encoding: the factor of each row; none for those that training starts from",
            (),
        ),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_levels_exist, sound_scales("alpha")),
    encode=encode,
    encoding="nearest",
    oracle="formula of the public quantizer, evaluated with torch",
    arithmetic="exact in this order; the product taken before the quotient differs by up to 1e-6",
    notes=(
        "The catalogue's two-bit block has integer levels -1 to 2; the method's are symmetric half steps. There is no "
        "packed release, so levels stand unpacked here; ternary blocks are those of TQ1_0."
    ),
)
