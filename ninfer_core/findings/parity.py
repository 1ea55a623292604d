"""Codes of the check `parity`: artifact against source under a recipe (check catalogue F)."""

from ninfer_core.findings.definition import Definition, error

PARITY: tuple[Definition, ...] = (
    error(
        "parity.word_mismatch",
        "F1",
        "A stored direct word differs from the word that the recipe makes of the source.",
        "Another source revision, a cast the recipe does not name, or a detour through another type that flushed "
        "subnormals or rewrote NaN payloads.",
        "Check the source digests first; then convert again with this recipe and compare.",
        where="index: flat element; stored, derived: the two words",
    ),
    error(
        "parity.code_mismatch",
        "F2",
        "A stored code differs from the one the encoder profile gives for the source.",
        "Another encoder: dividing by the scale instead of multiplying by its reciprocal changes codes only at "
        "rounding ties; a few dozen in a million differ. Many differing rows mean another source or a wrong row order.",
        "Check the source digests and the recipe; then convert again.",
        where="stored, derived: the two codes",
    ),
    error(
        "parity.scale_mismatch",
        "F2",
        "A stored scale differs from the one the encoder profile gives for the source.",
        "Another encoder or another source; scales from another group size differ everywhere.",
        "Check the source digests and the recipe; then convert again.",
        where="stored, derived: the two scale words",
    ),
    error(
        "parity.source_refused",
        "F2",
        "The encoder profile refuses the source of this object, so no stored word can be right.",
        "A source value is not finite, or a group's scale is beyond binary16.",
        "The artifact was made from something else; find its real source.",
    ),
    error(
        "parity.cast_refused",
        "F1",
        "A cast of the recipe refuses a source value, so no stored word can be right.",
        "A NaN, a finite value that would become infinite, or an integer that does not fit.",
        "The artifact was made from something else; find its real source.",
    ),
    error(
        "parity.resource_mismatch",
        "F5",
        "A resource differs from the file that the recipe copies.",
        "The source file changed, or line ends were rewritten.",
        "Compare the two digests; convert again from the right revision.",
    ),
    error(
        "parity.object_without_rule",
        "F1",
        "The artifact holds an object that no rule of the recipe makes.",
        "Another recipe made this artifact.",
        "Use the recipe that made the artifact; revision 3 names it by digest in its provenance.",
    ),
    error(
        "parity.object_missing",
        "F1",
        "The recipe makes an object that the artifact does not hold.",
        "Another recipe made this artifact, or a conversion that stopped early.",
        "Convert again and compare.",
    ),
    error(
        "parity.object_differs",
        "F1",
        "Kind, format or shape of an object differ from what the recipe makes.",
        "Another recipe made this artifact.",
        "Use the recipe that made the artifact; revision 3 names it by digest in its provenance.",
    ),
    error(
        "parity.identity_differs",
        None,
        "The identity in the artifact is not the identity of the recipe.",
        "Another recipe made this artifact.",
        "Use the recipe that made the artifact; revision 3 names it by digest in its provenance.",
    ),
)
