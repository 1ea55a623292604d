"""Codes of the check `restrictions`: what a recipe demands of stored words (check catalogue C4, C7, C8, C9)."""

from ninfer_core.findings.definition import Definition, error

_BY = "the basis of the restriction: contract and derived are errors, recommended is an advisory"
_CONVERT = "Convert the object again with the recipe that it claims; do not repair single words."


def _restriction(
    slug: str, rule: str, meaning: str, causes: str, remedy: str = _CONVERT, where: str = ""
) -> Definition:
    return Definition(f"restrictions.{slug}", rule, "error", meaning, causes, remedy, where, _BY)


RESTRICTIONS: tuple[Definition, ...] = (
    error(
        "restrictions.identity_differs",
        "B1",
        "The identity in the artifact is not that of the recipe whose demands were judged.",
        "The recipe of another model or of other weights of it.",
        "Give the recipe that made the artifact; `--recipe auto` picks the registered one of its identity.",
        where="member",
    ),
    _restriction(
        "canonical_group_shape",
        "C4",
        "A group cannot come from the canonical encoder that the recipe names: under a normal scale the largest code "
        "magnitude is not qmax, or all codes are zero under a positive scale that is not the rescue word 0x0001.",
        "Another encoder (one that searches for a scale, or one with another divisor), a changed code, or codes and "
        "scales from different groups.",
        where="word: the scale; largest: the largest code magnitude of the group",
    ),
    _restriction(
        "canonical_fp8_row_shape",
        "C7",
        "A row cannot come from the FP8 row encoder that the recipe names: under a normal scale no code has magnitude "
        "word 0x7e, or a row with scale zero stores a negative zero.",
        "Another encoder, a changed code, or codes and scales from different rows.",
        where="word: the scale; code: the first negative zero, where that is the fault",
    ),
    _restriction(
        "stored_finite",
        "C8",
        "A stored word is infinite or NaN.",
        "The source holds it, since direct words are copied as they are; or a cast overflowed.",
        "Look at the source tensor: where it is not finite either, the checkpoint itself is broken.",
        where="index: flat element; word: the stored word",
    ),
    _restriction(
        "fp32_low16_zero",
        "C8",
        "The low sixteen bits of an FP32 word are not zero, so it is no widened BF16 word.",
        "The values passed through arithmetic, or come from another checkpoint than the recipe's.",
        where="index: flat element; word: the stored word",
    ),
    _restriction(
        "finite_positive",
        "C8",
        "A stored word is not a finite number above zero.",
        "A scale that was never set, its sign lost, or a reciprocal that overflowed.",
        where="index: flat element; word: the stored word",
    ),
    _restriction(
        "int_range",
        "C8",
        "A stored integer lies outside the range that the recipe states.",
        "Ids of another vocabulary, or integers of another width or byte order.",
        where="index: flat element; value: the stored integer",
    ),
    _restriction(
        "unique",
        "C8",
        "A stored word occurs twice where the recipe demands that all differ.",
        "A list made without removing what it already holds, or two entries written over each other.",
        where="index: flat element of the first repetition; first: where the same word stands before; value: the word",
    ),
    error(
        "restrictions.resource_pin",
        "C9",
        "A resource is not the one whose length or sha256 the recipe pins.",
        "Another revision of the source, or rewritten line ends.",
        "Fetch the pinned file; or, if the new one is meant, state its digest in a new recipe.",
    ),
)
