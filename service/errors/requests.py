"""What is wrong with a request itself: its address, method, body and headers, or the service's own fault."""

from service.errors.base import NotFound, ServiceError


class Internal(ServiceError):
    """Whatever was not foreseen."""


class RouteNotFound(NotFound):
    """A path that leads nowhere."""

    code = "route_not_found"
    title = "No such address"
    help = "GET /openapi.json lists every address."


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
