"""Codes of the check `parity`: artifact against source under a recipe (check catalogue F)."""

from ninfer_core.findings.definition import Definition, advisory, error

PARITY: tuple[Definition, ...] = (
    error(
        "parity.word_mismatch",
        "F1",
        "A stored direct word differs from the word that the recipe makes of the source.",
        "Another source revision, a cast the recipe does not name, or a detour through another type that flushed "
        "subnormals or rewrote NaN payloads. Whole rows that differ while others are equal mean a wrong order of rows.",
        "Check the source digests first; then convert again with this recipe and compare.",
        where="index: flat element; stored, derived: the two words; elements, rows_differ, rows_equal: the first few",
    ),
    error(
        "parity.code_mismatch",
        "F2",
        "A stored code differs from the one the encoder profile gives for the source.",
        "Another encoder: dividing by the scale instead of multiplying by its reciprocal changes codes only at "
        "rounding ties; a few dozen in a million differ. Many differing rows mean another source or a wrong row order.",
        "Check the source digests and the recipe; then convert again.",
        where="stored, derived: the two codes; rows, rows_differ, rows_equal: the first few",
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
        "parity.padding_mismatch",
        "F2",
        "A padding lane, a padded group or a byte between planes is not zero, as the encoder would leave it.",
        "A writer that did not clear its buffer, or an edit of the file.",
        "Convert again and compare.",
        where="stored: the code, scale word or byte",
    ),
    error(
        "parity.copied_code_mismatch",
        "F3",
        "A code of a copied quantized matrix differs from the source's code.",
        "Nibbles exchanged, signs of zeros lost, values quantized anew, or a wrong row order.",
        "Check the source digests and the recipe; then convert again.",
        where="stored, derived: the two code words; rows, rows_differ, rows_equal: the first few",
    ),
    error(
        "parity.copied_scale_mismatch",
        "F3",
        "A scale of a copied quantized matrix differs from the source's scale.",
        "A scale plane that was swizzled twice or not at all, scales of other rows, or a multiplier folded into them.",
        "Check the source digests and the recipe; then convert again.",
        where="stored, derived: the two scale words",
    ),
    error(
        "parity.divisor_mismatch",
        "F3",
        "The divisor of a copied NVFP4 matrix is not the word that the recipe makes of the source.",
        "The divisor of another matrix, or one that was computed anew.",
        "Check the source digests and the recipe; then convert again.",
        where="stored, derived: the two binary32 words",
    ),
    error(
        "parity.global_scale_direction",
        "F3",
        "The global field of an NVFP4 matrix has the wrong direction: a multiplier is stored as the divisor, or the "
        "reciprocal of a divisor.",
        "The converter took the other convention than the checkpoint's. All values are off by one constant factor.",
        "Convert again; a checkpoint that states a multiplier needs the operation `invert`.",
        where="stored, derived: the two binary32 words; divisor, expected_divisor: their values; ratio: stored values "
        "over right ones",
    ),
    error(
        "parity.copied_padding_mismatch",
        "F3",
        "A byte between the planes of a copied quantized matrix is not zero.",
        "A writer that did not clear its buffer, or an edit of the file.",
        "Convert again and compare.",
        where="stored: the byte",
    ),
    error(
        "parity.id_mismatch",
        "F4",
        "A stored id differs from the one that the ranking gives.",
        "Another ranking or tokenizer, or another order of ids with equal counts.",
        "Check the digest of the ranking; then convert again.",
        where="index: flat element; stored, derived: the two ids; elements: the first few",
    ),
    error(
        "parity.bound_exceeded",
        "F2",
        "A stored value lies further from its source than the producer states.",
        "Another source, another encoder than the recipe names, or a bound that was never true.",
        "Check the source digests; then ask the producer.",
        where="measure: max_abs_error or max_scale_error; source, value: the two numbers; rows: the first few",
    ),
    error(
        "parity.bound_exceeded_overall",
        "F2",
        "The error of a whole tensor is larger than its producer states.",
        "Another source, another encoder than the recipe names, or a bound that was never true.",
        "Check the source digests; then ask the producer.",
        where="measure: nmse or min_sqnr_db",
    ),
    error(
        "parity.source_refused",
        "F2",
        "The encoder profile refuses the source of this object, so no stored word can be right.",
        "A source value is not finite, a group's scale is beyond binary16, or a row's scale has no finite reciprocal.",
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
        "B2",
        "The artifact holds an object that no rule of the recipe makes.",
        "Another recipe made this artifact.",
        "Use the recipe that made the artifact; revision 3 names it by digest in its provenance.",
    ),
    error(
        "parity.object_missing",
        "B2",
        "The recipe makes an object that the artifact does not hold.",
        "Another recipe made this artifact, or a conversion that stopped early.",
        "Convert again and compare.",
    ),
    error(
        "parity.object_differs",
        "B3",
        "Kind, format or shape of an object differ from what the recipe makes.",
        "Another recipe made this artifact.",
        "Use the recipe that made the artifact; revision 3 names it by digest in its provenance.",
    ),
    error(
        "parity.section_differs",
        None,
        "Components, bindings, uses or metadata of a file of revision 3 are not those that the recipe gives it.",
        "Another recipe or another converter made this artifact, or its directory was edited: equal words bound to "
        "other names are another model.",
        "Use the recipe that made the artifact, or state in the recipe the `components` and `metadata` that are right.",
        where="path: of the member",
    ),
    advisory(
        "parity.claim_differs",
        None,
        "The provenance in a file of revision 3 claims another recipe, identity or source than those that it was "
        "verified with.",
        "Another recipe of the same words, or a claim that was edited. Claims are read and never taken as proof: they "
        "neither pass nor fail anything.",
        "Find out which recipe made the artifact; what was verified holds for the recipe in the report.",
        where="path: of the member",
    ),
    error(
        "parity.identity_differs",
        "B1",
        "The identity in the artifact is not the identity of the recipe.",
        "Another recipe made this artifact.",
        "Use the recipe that made the artifact; revision 3 names it by digest in its provenance.",
    ),
)
