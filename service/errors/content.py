"""Content, and what is named out of it."""

from service.errors.base import NotFound, ServiceError


class BlobNotFound(NotFound):
    """Content that this project does not hold."""

    code = "blob_not_found"
    title = "No such content"
    help = "Push it with POST /v1/blobs."


class ArtifactNotFound(NotFound):
    """An artifact that this project does not hold."""

    code = "artifact_not_found"
    title = "No such artifact"
    help = "GET /v1/artifacts lists them; POST /v1/artifacts makes one."


class CheckpointNotFound(NotFound):
    """A checkpoint that this project does not hold."""

    code = "checkpoint_not_found"
    title = "No such checkpoint"
    help = "GET /v1/checkpoints lists them; POST /v1/checkpoints makes one."


class RecipeNotFound(NotFound):
    """A recipe that this project does not hold."""

    code = "recipe_not_found"
    title = "No such recipe"
    help = "GET /v1/recipes lists them; POST /v1/recipes stores one."


class TargetNotFound(NotFound):
    """A target that is neither registered nor stored in this project."""

    code = "target_not_found"
    title = "No such target"
    help = "GET /v1/targets lists them; POST /v1/targets stores one."


class ObjectNotFound(NotFound):
    """An object that the artifact does not list."""

    code = "object_not_found"
    title = "No such object"
    help = "GET /v1/artifacts/{digest}/objects lists them, once a worker has read the directory."


class SchemeNotFound(NotFound):
    """A name that no scheme and no form of the catalogue has."""

    code = "scheme_not_found"
    title = "No such scheme"
    help = "GET /v1/schemes lists them. None of them is a format of a `.ninfer` file; GET /v1/formats lists those."


class DigestMismatch(ServiceError):
    """Bytes that are not what the header announced; nothing of them is kept."""

    code = "digest_mismatch"
    status = 422
    title = "The bytes are not what the digest header announced"
    help = (
        "Nothing was kept. The bytes changed on their way, or the digest is of another file: send them again."
    )


class BlobsMissing(ServiceError):
    """Files whose content this project does not hold."""

    code = "blobs_missing"
    status = 422
    title = "Some of the content is not here"
    help = "Push each digest that `faults` lists with POST /v1/blobs, then ask again."


class TooManyFiles(ServiceError):
    """More files than the settings allow."""

    code = "too_many_files"
    status = 422
    title = "Too many files"
    help = "`max_files` of the service's settings is the limit."


class ImportRefused(ServiceError):
    """A path or an object that imports may not read, whether it is there or not."""

    code = "import_refused"
    status = 422
    title = "Imports may not read that"
    help = "`import_roots` and `import_buckets` of the service's settings say what they may read."


class EntryUnclear(ServiceError):
    """Files among which none, or more than one, can be the one to begin with."""

    code = "entry_unclear"
    status = 422
    title = "No single file to begin with"
    help = (
        "An artifact of kind ninfer has one file that ends in .ninfer, or one file at all; one of kind safetensors "
        "has one .safetensors file, or one .safetensors.index.json with its shards."
    )


class ArtifactKindConflict(ServiceError):
    """A file that is an artifact of another kind already."""

    code = "artifact_kind_conflict"
    status = 409
    title = "The same file is an artifact of another kind"
    help = "One file has one digest, and an artifact one kind. Use the artifact that is there."


class RecipeFaulty(ServiceError):
    """A recipe with faults; `findings` has all of them."""

    code = "recipe_faulty"
    status = 422
    title = "The recipe has faults"
    help = "`findings` lists every fault with its place; `ninfer-gate explain CODE` says what each means."


class TargetFaulty(ServiceError):
    """A target with faults; `findings` has all of them."""

    code = "target_faulty"
    status = 422
    title = "The target has faults"
    help = "`findings` lists every fault with its place; `ninfer-gate explain CODE` says what each means."


class ContentLost(ServiceError):
    """Content that the database knows and the store does not hold any more."""

    code = "content_lost"
    status = 410
    title = "The content is gone"
    help = "The service's store has lost it. Push it again; whoever runs the service should look at its disk."


class StorageFailed(ServiceError):
    """The content store did not take the bytes."""

    code = "storage_failed"
    status = 507
    title = "The content could not be stored"
    help = "The service's disk may be full or read-only. Nothing was stored; an upload goes on from its offset later."
