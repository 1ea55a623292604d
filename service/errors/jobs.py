"""Jobs, campaigns, and what they have found out."""

from service.errors.base import NotFound, ServiceError


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


class SchemeCheckNotFound(NotFound):
    """A check of a scheme that this project never had."""

    code = "scheme_check_not_found"
    title = "No such check"
    help = "GET /v1/scheme-checks lists them; the job that makes one names it as `scheme_check`."


class CampaignNotFound(NotFound):
    """A campaign that this project never started."""

    code = "campaign_not_found"
    title = "No such campaign"
    help = "GET /v1/campaigns lists them."


class CampaignRunning(ServiceError):
    """A campaign whose name another one has that still runs and asks for something else."""

    code = "campaign_running"
    status = 409
    title = "A campaign of this name is running"
    help = "Give another name, or cancel the one that runs."


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
