"""Codes of `convert`: why a source cannot become the object that a recipe asks for."""

from ninfer_core.findings.definition import Definition, error

_RECIPE = "Look at the tensor in its source; then change the recipe, or mend the source. Nothing was written."

CONVERT: tuple[Definition, ...] = (
    error(
        "convert.source_not_finite",
        "E4",
        "An encoder met a source value that is NaN, infinite, or not finite once rounded to binary32.",
        "Diverged training, an overflowing merge of checkpoints, or a damaged file.",
        _RECIPE,
        where="word: the source word",
    ),
    error(
        "convert.scale_overflow",
        "E4",
        "The scale of a group is beyond the largest binary16 value.",
        "Source values of a magnitude that this format cannot express.",
        _RECIPE,
        where="word: the binary32 word of the scale before rounding",
    ),
    error(
        "convert.scale_underflow",
        "E4",
        "The scale of a row of FP8 codes is at most 2^-128: its reciprocal is not finite, and no value can be encoded.",
        "A row that is not zero and whose largest magnitude is below about 2^-119.",
        _RECIPE,
        where="word: the binary32 word of the scale before rounding",
    ),
    error(
        "convert.cast_refused",
        "E4",
        "A cast of the recipe met a value that the narrower type cannot take.",
        "A NaN, a finite value that would become infinite, or an integer that does not fit.",
        _RECIPE,
        where="index: flat element; word: the source word",
    ),
)
