"""Codes of the check `source`: a checkpoint against what a recipe says of it (check catalogue E)."""

from ninfer_core.findings.definition import Definition, error

_REVISION = "Compare repository and revision with the recipe's; fetch that revision."

SOURCE: tuple[Definition, ...] = (
    error(
        "source.tensor_missing",
        "E2",
        "A rule reads a tensor that the checkpoint does not hold.",
        "Another revision, another model, or a misspelled name in the recipe.",
        _REVISION,
        where="role, tensor, rule",
    ),
    error(
        "source.shape_mismatch",
        "E2",
        "A tensor of the checkpoint has another shape than the recipe states.",
        "Another revision or another model size.",
        _REVISION,
        where="role, tensor, rule",
    ),
    error(
        "source.dtype_mismatch",
        "E2",
        "A tensor of the checkpoint has another dtype than the recipe states.",
        "A copy of the checkpoint that somebody converted to another type.",
        _REVISION,
        where="role, tensor, rule",
    ),
    error(
        "source.tensor_unexpected",
        "E2",
        "The checkpoint holds a tensor that no rule reads, and the recipe demands exact tensor names.",
        "Another revision, or a recipe that forgot a tensor.",
        "Name the tensor in a rule, or drop `exact_tensor_names` and say in the rationale why it is left out.",
        where="role, tensor",
    ),
    error(
        "source.shard_count",
        "E2",
        "The index names another number of shards than the recipe states.",
        "Another revision or another export of the checkpoint.",
        _REVISION,
        where="role",
    ),
    error(
        "source.shard_unexpected",
        "E2",
        "The folder holds safetensors files beside the shards, and the recipe demands that there are none.",
        "Another export in the same folder.",
        "Keep the files of one revision in the folder.",
        where="role, files",
    ),
    error(
        "source.file_missing",
        "E1",
        "A file that the recipe names is not there.",
        "An incomplete download, or another folder.",
        "Fetch the file, or give the right folder.",
        where="role, file",
    ),
    error(
        "source.file_size_mismatch",
        "F5",
        "A file has another length than the recipe pins.",
        "Another revision, or line ends that were rewritten.",
        _REVISION,
        where="role or input, file",
    ),
    error(
        "source.file_digest_mismatch",
        "F5",
        "A file has another sha256 than the recipe pins.",
        "Another revision, or line ends that were rewritten.",
        _REVISION,
        where="role or input, file",
    ),
    error(
        "source.file_empty",
        "A6",
        "A file that becomes a resource is empty; a resource has at least one byte.",
        "An interrupted download, or a placeholder.",
        "Fetch the file, or leave the resource out of the recipe.",
        where="role or input, file",
    ),
    error(
        "source.changed",
        "E2",
        "A source file was written to while it was in use.",
        "A download or a merge still in progress.",
        "Try again when nobody writes to the checkpoint. `convert` wrote nothing.",
    ),
)
