"""Why a request was refused: one class for each failure a client could act on, with its stable code and HTTP status.

Use cases raise these; `service.api.problems` turns them into problem documents (RFC 9457). `ERRORS` is the whole
table: the documentation, the OpenAPI document and the tests read it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ninfer_core.errors import NinferError


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request: `place` is body, query, path or header; `path` says where in it."""

    place: str
    path: str
    message: str

    @property
    def where(self) -> dict[str, str]:
        """The place alone."""
        return {"in": self.place, "path": self.path}


class ServiceError(NinferError):
    """Root of every refusal; `faults` are its places, `findings` those of a document, `facts` further members."""

    code: str = "internal"
    status: int = 500
    title: str = "The service failed"
    help: str = "This is a fault of the service, not of the request. Its log says more."

    def __init__(
        self,
        detail: str,
        *faults: Fault,
        findings: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.faults = faults
        self.findings = tuple(findings)
        self.headers = dict(headers or {})
        self.facts = facts


class Internal(ServiceError):
    """Whatever was not foreseen."""


class Unauthorized(ServiceError):
    """No token, or one that opens nothing."""

    code = "unauthorized"
    status = 401
    title = "No valid token"
    help = "Send `Authorization: Bearer TOKEN`. `ninfer-gate token create --data DIR` makes one where the first is lost."

    def __init__(self) -> None:
        super().__init__(
            "This needs the token of a project.", headers={"WWW-Authenticate": 'Bearer realm="ninfer-gate"'}
        )


class ScopeMissing(ServiceError):
    """A token that may see this and not do it."""

    code = "scope_missing"
    status = 403
    title = "This token may not do that"
    help = "`ninfer-gate token create --scope SCOPE`, or POST /v1/tokens by an administrator, makes one that may."

    def __init__(self, scope: str) -> None:
        super().__init__(f"This needs a token with the scope `{scope}`.", scope=scope)


class IdentityRefused(ServiceError):
    """A signed identity that opens no project."""

    code = "identity_refused"
    status = 401
    title = "This identity is not trusted"
    help = "Issuer, audience and claims have to be those of a trust (GET /v1/trusts). The service's log says what was wrong."

    def __init__(self) -> None:
        super().__init__("No project trusts this identity, or it is not a valid one.")


class RateLimited(ServiceError):
    """More requests than are taken of one caller."""

    code = "rate_limited"
    status = 429
    title = "Too many requests"
    help = "Wait as long as `Retry-After` says. `rate_limit` and `login_rate_limit` of the service's settings are the limits."


class QuotaExceeded(ServiceError):
    """Content for which the project has no room."""

    code = "quota_exceeded"
    status = 413
    title = "The project's storage is full"
    help = "Nothing was kept. Whoever runs the service can widen the quota, or remove what nobody needs."


class NotFound(ServiceError):
    """Something that this project does not hold."""

    status = 404


class RouteNotFound(NotFound):
    """A path that leads nowhere."""

    code = "route_not_found"
    title = "No such address"
    help = "GET /openapi.json lists every address."


class TokenNotFound(NotFound):
    """A token that this project does not have."""

    code = "token_not_found"
    title = "No such token"
    help = "GET /v1/tokens lists them. It is named by its id, never by its text."


class TrustNotFound(NotFound):
    """A trust that this project does not have."""

    code = "trust_not_found"
    title = "No such trust"
    help = "GET /v1/trusts lists them."


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


class JobNotFound(NotFound):
    """A job that this project never had."""

    code = "job_not_found"
    title = "No such job"
    help = "GET /v1/jobs lists them."


class RunNotFound(NotFound):
    """A run that this project never had."""

    code = "run_not_found"
    title = "No such run"
    help = "GET /v1/runs lists them."


class ConversionNotFound(NotFound):
    """A conversion that this project never had."""

    code = "conversion_not_found"
    title = "No such conversion"
    help = "The job that made it names it as `conversion`."


class ComparisonNotFound(NotFound):
    """A comparison that this project never had."""

    code = "comparison_not_found"
    title = "No such comparison"
    help = "The job that made it names it as `comparison`."


class SelfCheckNotFound(NotFound):
    """A self-check that this project does not hold."""

    code = "selfcheck_not_found"
    title = "No such self-check"
    help = "GET /v1/selfchecks lists them; that of a job is there once the job has an answer."


class ImportNotFound(NotFound):
    """An import that this project does not have."""

    code = "import_not_found"
    title = "No such import"
    help = "GET /v1/imports lists them; POST /v1/jobs with the type `import` starts one."


class SchemeNotFound(NotFound):
    """A name that no scheme and no form of the catalogue has."""

    code = "scheme_not_found"
    title = "No such scheme"
    help = "GET /v1/schemes lists them. None of them is a format of a `.ninfer` file; GET /v1/formats lists those."


class SchemeCheckNotFound(NotFound):
    """A check of a scheme that this project never had."""

    code = "scheme_check_not_found"
    title = "No such check"
    help = "GET /v1/scheme-checks lists them; the job that makes one names it as `scheme_check`."


class UploadNotFound(NotFound):
    """An upload that this project does not have."""

    code = "upload_not_found"
    title = "No such upload"
    help = "GET /v1/uploads lists those that are open; POST /v1/uploads begins one."


class UploadGone(ServiceError):
    """An upload that can't go on: it expired, failed, or its bytes are not on this machine."""

    code = "upload_gone"
    status = 410
    title = "The upload is over"
    help = "Begin a new one with POST /v1/uploads."


class UploadBusy(ServiceError):
    """An upload that somebody writes to at this moment."""

    code = "upload_busy"
    status = 423
    title = "The upload is being written"
    help = "Ask for its offset again in a moment; one writer at a time is let in."


class UploadElsewhere(ServiceError):
    """An upload whose bytes are on another machine of the service, which does not share its folder with this one."""

    code = "upload_elsewhere"
    status = 503
    title = "The upload goes on at another machine"
    help = (
        "Ask again: the load balancer may choose the right one. It expires like any upload; if that machine is gone, "
        "begin a new one."
    )

    def __init__(self) -> None:
        super().__init__(
            "Its bytes come in at another machine of this service.", headers={"Retry-After": "1"}
        )


class TooManyUploads(ServiceError):
    """One more upload than a project may have open."""

    code = "too_many_uploads"
    status = 409
    title = "The project has too many open uploads"
    help = (
        "GET /v1/uploads lists them; finish some, or give them up with DELETE. `max_open_uploads` of the service's "
        "settings is the limit."
    )


class OffsetConflict(ServiceError):
    """Bytes for another place than the one where the upload goes on."""

    code = "upload_offset_conflict"
    status = 409
    title = "The upload goes on elsewhere"
    help = "Nothing was changed. `Upload-Offset` says where it goes on."


class UploadConflict(ServiceError):
    """Something that this kind of upload, or its state, has no place for."""

    code = "upload_conflict"
    status = 409
    title = "The upload takes no such request"
    help = "GET /v1/uploads/{upload} says its protocol and state."


class TusVersionUnsupported(ServiceError):
    """Another version of the tus protocol, or none."""

    code = "tus_version_unsupported"
    status = 412
    title = "No version of tus that is spoken here"
    help = "Send `Tus-Resumable: 1.0.0`."


class UploadHeaderMalformed(ServiceError):
    """A header of the tus protocol that can't be read, or is missing."""

    code = "upload_header_malformed"
    status = 400
    title = "A header of the upload cannot be read"
    help = "OPTIONS /v1/uploads says what is understood; the tus protocol says how headers are written."


class ChecksumMismatch(ServiceError):
    """Bytes of one request that have another checksum than it says."""

    code = "upload_checksum_mismatch"
    status = 460
    title = "The checksum of these bytes differs"
    help = "Nothing of this request was kept. Send it again."


class PartsUnavailable(ServiceError):
    """Parts straight to the store, where the store is no S3."""

    code = "parts_unavailable"
    status = 409
    title = "The store takes no parts"
    help = "Use tus: POST /v1/uploads with `Tus-Resumable: 1.0.0`."


class CampaignNotFound(NotFound):
    """A campaign that this project never started."""

    code = "campaign_not_found"
    title = "No such campaign"
    help = "GET /v1/campaigns lists them."


class MethodNotAllowed(ServiceError):
    """A path that does not take this method."""

    code = "method_not_allowed"
    status = 405
    title = "This address does not take the method"
    help = "The header `Allow` and GET /openapi.json say what it takes."


class TooSlow(ServiceError):
    """A body of which nothing came for long."""

    code = "too_slow"
    status = 408
    title = "The body does not come"
    help = "Nothing was kept. Send it again; `idle_seconds` of the service's settings is how long it waits."


class BodyTooLarge(ServiceError):
    """More bytes than the settings allow."""

    code = "body_too_large"
    status = 413
    title = "The body is too large"
    help = "`max_json_bytes` and `max_blob_bytes` of the service's settings are the limits."


class MediaTypeUnsupported(ServiceError):
    """A body of another type, or in a content coding."""

    code = "media_type_unsupported"
    status = 415
    title = "The body is of another type than this address takes"
    help = "Send JSON as `application/json` and content as its plain bytes, without a content coding."


class JsonMalformed(ServiceError):
    """A body that is no strict JSON."""

    code = "json_malformed"
    status = 400
    title = "The body is no JSON"
    help = "Bodies are strict JSON in UTF-8: no NaN, no comments, no lone surrogates."


class JsonTooDeep(ServiceError):
    """JSON nested deeper than the settings allow."""

    code = "json_too_deep"
    status = 400
    title = "The JSON is nested too deeply"
    help = "`max_json_depth` of the service's settings is the limit."


class JsonMemberDuplicate(ServiceError):
    """A member named twice in one object."""

    code = "json_member_duplicate"
    status = 400
    title = "A member is given twice"
    help = "Readers disagree on which of the two counts: give each member once."


class InvalidRequest(ServiceError):
    """Members, parameters or headers of the wrong shape."""

    code = "invalid_request"
    status = 422
    title = "The request does not fit its description"
    help = "`faults` lists the places; GET /openapi.json describes the shapes. Unknown members are refused."


class DigestHeaderMalformed(ServiceError):
    """A Repr-Digest or Content-Digest that cannot be read."""

    code = "digest_header_malformed"
    status = 400
    title = "The digest header cannot be read"
    help = "RFC 9530: `Repr-Digest: sha-256=:BASE64:`, with colons around the base64 of the 32 bytes."


class RangeNotSatisfiable(ServiceError):
    """A range that begins past the end of the content."""

    code = "range_not_satisfiable"
    status = 416
    title = "The content ends before this range"
    help = "`Content-Range` of this answer says how many bytes there are."


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


class CheckUnknown(ServiceError):
    """A check that does not exist."""

    code = "check_unknown"
    status = 422
    title = "There is no such check"
    help = "Leave `checks` empty for the usual ones."


class ReferenceUnknown(ServiceError):
    """An artifact, checkpoint or recipe that a job names and this project does not hold."""

    code = "reference_unknown"
    status = 422
    title = "The job names something that is not here"
    help = "`faults` says which. Push it first."


class RecipeMismatch(ServiceError):
    """Roles or inputs that are not those of the recipe."""

    code = "recipe_mismatch"
    status = 422
    title = "Checkpoints or inputs are not those that the recipe reads"
    help = "Give one checkpoint for each member of the recipe's `sources` and one digest for each of its `inputs`."


class IdempotencyKeyReused(ServiceError):
    """A key that stands for another request."""

    code = "idempotency_key_reused"
    status = 409
    title = "The idempotency key stands for another request"
    help = "Use a new key for a new job; the same key is only for sending the same body again."


class CampaignRunning(ServiceError):
    """A campaign whose name another one has that still runs and asks for something else."""

    code = "campaign_running"
    status = 409
    title = "A campaign of this name is running"
    help = "Give another name, or cancel the one that runs."


class ProjectProtected(ServiceError):
    """A project that cannot be deleted."""

    code = "project_protected"
    status = 409
    title = "This project stays"
    help = "Nothing was changed. Other projects can be deleted."


class NotFinal(ServiceError):
    """A run or conversion that is still going on."""

    code = "not_final"
    status = 409
    title = "There is no report yet"
    help = "Wait for the job: GET /v1/jobs/{id}/events tells when it is done."


class NoReport(ServiceError):
    """A run or conversion that ended without an answer."""

    code = "no_report"
    status = 409
    title = "The job ended without a report"
    help = "A job that was cancelled or could not run answers nothing. Start another one."


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


class Unavailable(ServiceError):
    """The database or the content store does not answer, or the service is being stopped."""

    code = "unavailable"
    status = 503
    title = "The service cannot answer just now"
    help = "Try again in a moment."


class NotReady(ServiceError):
    """The service cannot work yet, or no longer; `reasons` says why."""

    code = "not_ready"
    status = 503
    title = "The service is not ready"
    help = "`reasons` says what it lacks."


ERRORS: Final[tuple[type[ServiceError], ...]] = (
    JsonMalformed,
    JsonTooDeep,
    JsonMemberDuplicate,
    DigestHeaderMalformed,
    Unauthorized,
    IdentityRefused,
    ScopeMissing,
    RouteNotFound,
    TokenNotFound,
    TrustNotFound,
    BlobNotFound,
    ArtifactNotFound,
    CheckpointNotFound,
    RecipeNotFound,
    TargetNotFound,
    ObjectNotFound,
    JobNotFound,
    RunNotFound,
    ConversionNotFound,
    ComparisonNotFound,
    SelfCheckNotFound,
    SchemeNotFound,
    SchemeCheckNotFound,
    ImportNotFound,
    UploadNotFound,
    UploadGone,
    UploadBusy,
    TooManyUploads,
    OffsetConflict,
    UploadConflict,
    TusVersionUnsupported,
    UploadHeaderMalformed,
    ChecksumMismatch,
    PartsUnavailable,
    CampaignNotFound,
    MethodNotAllowed,
    TooSlow,
    RateLimited,
    QuotaExceeded,
    ArtifactKindConflict,
    IdempotencyKeyReused,
    CampaignRunning,
    ProjectProtected,
    NotFinal,
    NoReport,
    ContentLost,
    BodyTooLarge,
    MediaTypeUnsupported,
    RangeNotSatisfiable,
    InvalidRequest,
    DigestMismatch,
    BlobsMissing,
    TooManyFiles,
    ImportRefused,
    EntryUnclear,
    RecipeFaulty,
    TargetFaulty,
    CheckUnknown,
    ReferenceUnknown,
    RecipeMismatch,
    Internal,
    UploadElsewhere,
    Unavailable,
    NotReady,
    StorageFailed,
)
