"""Who may not do what, how often, and what is not theirs."""

from service.errors.base import NotFound, ServiceError


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


class ProjectProtected(ServiceError):
    """A project that cannot be deleted."""

    code = "project_protected"
    status = 409
    title = "This project stays"
    help = "Nothing was changed. Other projects can be deleted."
