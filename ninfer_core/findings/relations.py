"""Codes of the check `relations`: what objects of one artifact, or tensors of one file, say of each other."""

from ninfer_core.findings.definition import Definition, error

_BY = "an id map of the recipe's own ranking makes it an error, else the basis of the restriction decides"
_PAIR = "Fetch the checkpoint again, or ask its author; codes without their scales are no weights."

RELATIONS: tuple[Definition, ...] = (
    Definition(
        "relations.special_id_missing",
        "D1",
        "error",
        "A special token of the stored tokenizer_config does not occur in the stored id map, so the draft head can "
        "never propose it.",
        "The map was made from another tokenizer, or without its forced ids.",
        "Make the shortlist again from the tokenizer_config that the artifact carries.",
        where="id: the special id; resource: the object that names it",
        severity_by=_BY,
    ),
    Definition(
        "relations.resource_unreadable",
        "D1",
        "error",
        "The stored tokenizer_config is no JSON object with a table `added_tokens_decoder` of ids, so the special ids "
        "are not known.",
        "Another file under its name, or a damaged one.",
        "Compare the resource with the source's file; convert again.",
        where="faults: what is wrong with it",
        severity_by=_BY,
    ),
    error(
        "relations.draft_row_differs",
        "D2",
        "A row of the draft head and the row of the output head whose id it carries lie further apart than two "
        "roundings of one BF16 row can.",
        "Rows gathered in another order than the stored ids, another head, or a changed scale or code.",
        "Gather the rows again by the stored ids, from the matrix that the output head is made of.",
        where="row: of the draft head; id, head: row and name of the other object; column: the first such element; "
        "draft, head_value: the two values; allowed: half the sum of both scales; rows: a few rows that differ",
    ),
    error(
        "relations.top_ids_differ",
        "D3",
        "The stored id map does not begin with the ids that the recipe knows to lead its ranking.",
        "Another ranking, or a map in another order.",
        "Make the shortlist again from the ranking that the recipe pins.",
        where="index: the first place that differs",
    ),
    error(
        "relations.scale_missing",
        None,
        "Codes of a quantized weight are there, their scale is not.",
        "A copy that took only tensors called weight, a shard that is missing, or a rename of one of the two.",
        _PAIR + " A cast of the codes to sixteen bits works and loses every magnitude.",
        where="tensor: the codes; missing: names looked for",
    ),
    error(
        "relations.scale_orphan",
        None,
        "A scale is there, the weight that it belongs to is not.",
        "The weight was dropped or renamed, or its shard is missing.",
        _PAIR,
        where="tensor: the scale; missing: names looked for",
    ),
    error(
        "relations.scale_shape",
        None,
        "A scale does not have as many values as its weight needs, or has them along another axis.",
        "Scale of a transposed or of another tensor, or codes split or fused without their scales.",
        _PAIR,
        where="tensor: the scale; weight: the codes; expected: the shapes that would fit",
    ),
    error(
        "relations.declared_contradicts_storage",
        None,
        "The bits and the group size that the configuration declares do not fit the stored shapes.",
        "The configuration of another quantization of the same model.",
        "Find the configuration that was written with these tensors. Nothing may be decoded by the wrong one.",
        where="tensor: the codes; bits, group_size: as declared; columns_by_words, columns_by_scales: both readings; "
        "fits: what the shapes allow",
    ),
    error(
        "relations.quantization_undeclared",
        None,
        "Packed codes whose width and group size no configuration declares: stored shapes fix only their product.",
        "The configuration was left behind when the tensors were copied.",
        "Take the configuration from where the tensors come from; a guess decodes without an error, and wrongly.",
        where="tensor: the codes; fits: every width and group size that the shapes allow",
    ),
)
