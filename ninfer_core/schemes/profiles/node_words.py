"""Numbers into the words of leaves as nodes of an ONNX function: what `nearest` does on arrays, bit for bit.

Bits of floats are read with BitCast, so that every comparison is one of integers. Where the arrays' encoder refuses a
value the function stops as well: it reaches for an element that is not there.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Shape, Values
from ninfer_core.schemes.profiles.leaf_values import SMALL
from ninfer_core.schemes.profiles.nearest import floor_log2
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.small_floats import (
    E8M0_BIAS,
    E8M0_NAN,
    SmallFloat,
    Specials,
    expand_e8m0,
    table,
    thresholds,
)
from ninfer_core.schemes.structs.leaves import LEAVES

if TYPE_CHECKING:
    from ninfer_core.schemes.functions.build import Builder, Tensor

_MAGNITUDE: Final = 0x7FFFFFFF
_INFINITY: Final = 0x7F800000
_SUMMED: Final = 7  # lanes that numpy adds from left to right; more it adds in pairs


class NodeWords:
    """Words written down as nodes; a function of `nearest` for each method."""

    def __init__(self, builder: "Builder") -> None:
        self.build = builder

    def magnitude(self, x: "Tensor") -> "Tensor":
        """The bits of FLOAT without the sign, INT32: ordered as magnitudes are, NaN above all."""
        bits = self.build.bit_cast(x, "INT32")
        return self.build.mask(bits, _MAGNITUDE)

    def only(self, x: "Tensor", shape: Shape, refused: "Tensor") -> "Tensor":
        """x, of that shape; a function that stops where any of `refused` holds."""
        build = self.build
        count = build.op("ReduceSum", build.cast(refused, "INT64"), keepdims=0)
        element = build.op("Min", count, build.constant(1, "INT64"))
        return build.gather(build.reshape(x, 1, *shape), element)

    def finite(self, x: "Tensor", shape: Shape) -> "Tensor":
        """x without NaN and infinity."""
        return self.only(x, shape, self.compared("GreaterOrEqual", self.magnitude(x), _INFINITY))

    def compared(self, kind: str, x: "Tensor", y: "Tensor | float") -> "Tensor":
        """BOOL of Less, Greater and their like."""
        from ninfer_core.schemes.functions.build import Tensor

        other = y if isinstance(y, Tensor) else self.build.constant(y, x.element)
        return self.build.op(kind, x, other, element="BOOL")

    def reached(self, x: "Tensor", levels: Sequence[int]) -> "Tensor":
        """How many of the rising `levels` are at or below each of x, both INT32: halving steps, no wide comparison."""
        build, steps = self.build, max(1, len(levels)).bit_length()
        # A level above all others is reached by nothing; it fills the table up.
        filled = [*levels, *([1 << 31] * ((1 << steps) - 1 - len(levels)))]
        levels_64 = build.constant(filled, "INT64")
        wide, found = build.cast(x, "INT64"), None
        for step in reversed(range(steps)):
            reach = build.constant((1 << step) - 1, "INT64")
            probe = reach if found is None else build.add(found, reach)
            passed = self.compared("GreaterOrEqual", wide, build.gather(levels_64, probe))
            gained = build.multiply(build.cast(passed, "INT64"), 1 << step)
            found = gained if found is None else build.add(found, gained)
        if found is None:
            raise ValueError("there is always a step")
        return found

    def small(self, form: SmallFloat, x: "Tensor", shape: Shape) -> "Tensor":
        """The codes nearest to FLOAT, INT64; what is beyond the largest is the largest (`small_floats.encode`)."""
        build = self.build
        magnitude = self.magnitude(x)
        codes = self.reached(magnitude, thresholds(form).tolist())
        negative = build.cast(self.compared("Less", build.bit_cast(x, "INT32"), 0), "INT64")
        if not form.signed:
            codes = build.multiply(codes, build.subtract(build.constant(1, "INT64"), negative))
        else:
            if form.specials is Specials.FNUZ:
                negative = build.multiply(negative, build.op("Min", codes, build.constant(1, "INT64")))
            codes = build.add(codes, build.multiply(negative, form.sign_bit))
        nan = self.compared("Greater", magnitude, _INFINITY)
        if form.nan is None:
            return self.only(codes, shape, nan)
        return build.where(nan, build.constant(form.nan, "INT64"), codes)

    def floats(self, x: "Tensor", shape: Shape, leaf: str) -> "Tensor":
        """The words of a floating-point leaf nearest to FLOAT, unsigned or INT64. Raises: CannotEncode."""
        build = self.build
        if leaf in SMALL:
            return self.small(SMALL[leaf], x, shape)
        if leaf == "FLOAT":
            return build.bit_cast(x, "UINT32")
        if leaf == "FLOAT16":  # for numbers and infinities: which NaN a cast gives is the runtime's choice
            return build.bit_cast(build.cast(x, "FLOAT16"), "UINT16")
        if leaf == "BFLOAT16":
            wide = build.cast(build.bit_cast(x, "UINT32"), "INT64")
            top = build.divide(wide, 1 << 16)
            nearest = build.divide(build.add(build.add(wide, 0x7FFF), build.mask(top, 1)), 1 << 16)
            nan = self.compared("Greater", self.magnitude(x), _INFINITY)
            return build.where(nan, build.either(top, build.constant(0x40, "INT64")), nearest)
        raise CannotEncode(f"no operators say how values become {leaf}")

    def integers(self, scaled: "Tensor", shape: Shape, zero: Any, leaf: str, bits: int) -> "Tensor":
        """FLOAT rounded, moved by the zero point and held in the range of a leaf; the words of it, INT64."""
        build = self.build
        signed = LEAVES[leaf].kind == "signed" and LEAVES[leaf].bits == bits
        if bits > 32:
            raise CannotEncode("binary64 does not hold integers of so many bits")
        low, high = -(1 << bits - 1) if signed else 0, (1 << bits - signed) - 1
        wide = build.cast(self.finite(scaled, shape), "DOUBLE")
        moved = build.add(build.op("Round", wide), build.constant(zero, "DOUBLE"))
        held = build.op("Clip", moved, build.constant(low, "DOUBLE"), build.constant(high, "DOUBLE"))
        whole = build.cast(held, "INT64")
        return build.mask(whole, (1 << bits) - 1) if signed else whole

    def entries(self, x: "Tensor", outer: Shape, entries: Values) -> "Tensor":
        """The nearest of `entries` [n, lanes] to each of x [*outer, lanes], INT64; distances in binary64 as on arrays."""
        build, lanes, rank = self.build, entries.shape[1], len(outer)
        if lanes > _SUMMED:
            raise CannotEncode("the distances of so many lanes depend on the order of their sum")
        order = [*range(0, len(entries), 2), *range(1, len(entries), 2)]
        wide = build.cast(self.finite(x, (*outer, lanes)), "DOUBLE")
        total = None
        for lane in range(lanes):
            apart = build.subtract(
                build.cut(wide, rank, lane, lane + 1),
                build.constant(entries[order, lane].astype(np.float64), "DOUBLE"),
            )
            square = build.multiply(apart, apart)
            total = square if total is None else build.add(total, square)
        if total is None:
            raise ValueError("an entry has a lane")
        picked = build.op("ArgMin", total, axis=rank, keepdims=0, element="INT64")
        return build.gather(build.constant(order, "INT64"), picked)

    def scale(self, largest: "Tensor", shape: Shape, leaf: str, top: Fraction) -> "tuple[Tensor, Tensor]":
        """Scale words for blocks with these largest magnitudes, and the scales as FLOAT (`nearest.scale_words`)."""
        build = self.build
        largest = self.finite(largest, shape)
        if leaf == "FLOAT8E8M0":
            exponents = [word - E8M0_BIAS + floor_log2(top) for word in range(1, E8M0_NAN)]
            powers = [np.float32(2.0**power) for power in exponents if power <= E8M0_BIAS]
            levels = np.maximum(np.asarray(powers, np.float32).view(np.int32), 1)
            words = self.reached(self.magnitude(largest), levels.tolist())
            return words, self._looked_up(words, expand_e8m0(np.arange(E8M0_NAN, dtype=np.uint8)))
        quotient = build.divide(build.cast(largest, "DOUBLE"), float(top))
        wanted = build.cast(quotient, "FLOAT")
        if leaf == "FLOAT16":
            halves = build.cast(build.op("Min", wanted, build.constant(65504.0, "FLOAT")), "FLOAT16")
            return build.bit_cast(halves, "UINT16"), build.cast(halves, "FLOAT")
        if leaf == "FLOAT":
            return build.bit_cast(wanted, "UINT32"), wanted
        words = self.floats(wanted, shape, leaf)
        if leaf in SMALL:
            return words, self._looked_up(words, table(SMALL[leaf]).view(np.float32))
        if leaf == "BFLOAT16":
            bits = build.cast(build.multiply(words, 1 << 16), "UINT32")
            return words, build.bit_cast(bits, "FLOAT")
        raise CannotEncode(f"no operators say how scales become {leaf}")

    def over(self, x: "Tensor", scales: "Tensor") -> "Tensor":
        """x / scales, 0 where a scale is 0."""
        build, zero = self.build, self.build.constant(0.0, "FLOAT")
        none = build.equal(scales, zero)
        some = build.where(none, build.constant(1.0, "FLOAT"), scales)
        return build.where(none, zero, build.divide(x, some))

    def over_constants(self, x: "Tensor", scales: Values) -> "Tensor":
        """x / scales that stand in the function."""
        held = self.build.constant(scales, "FLOAT")
        return self.build.divide(x, held) if scales.all() else self.over(x, held)

    def _looked_up(self, words: "Tensor", values: NDArray[np.float32]) -> "Tensor":
        return self.build.gather(self.build.constant(values, "FLOAT"), words)
