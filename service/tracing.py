"""Spans of requests and of the steps of jobs, sent to an OpenTelemetry collector where a setting names one.

Without `trace_endpoint` nothing is loaded and a span costs nothing; the extra `otel` brings what sends them.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, Protocol

from ninfer_core import __version__
from ninfer_core.errors import NinferError
from service.settings import Settings

_SEND_SECONDS: Final = 2.0
_FLUSH_MILLISECONDS: Final = 2_000  # at the end of a process; what a collector does not take by then is lost

Facts = Mapping[str, str | int | float]


class TracingMissing(NinferError):
    """A setting asks for traces, and what sends them is not installed."""

    code = "usage"

    def __init__(self) -> None:
        super().__init__(
            "NINFER_GATE_TRACE_ENDPOINT is set, but OpenTelemetry is not installed: `pip install 'ninfer-gate[otel]'`, "
            "or leave the setting out"
        )


class Span(Protocol):
    """One span, while it lasts."""

    def told(self, name: str, facts: Facts) -> None:
        """What is known of it only at its end."""
        ...


class _Silent:
    """What a span is where nobody traces."""

    def told(self, name: str, facts: Facts) -> None:
        """Nothing."""


_SILENT: Final = nullcontext(_Silent())


class _Tracing:
    """What `start` has set up in this process."""

    provider: Any = None
    tracer: Any = None


def start(settings: Settings, role: str) -> None:
    """Send spans of this process from now on, if the settings say where to. Raises: TracingMissing."""
    if settings.trace_endpoint is None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracingMissing from error
    resource = Resource.create({"service.name": f"ninfer-gate-{role}", "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=settings.trace_endpoint, timeout=_SEND_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    # Of our own, not the global one: what libraries trace by themselves would hold addresses and statements.
    _Tracing.provider, _Tracing.tracer = provider, provider.get_tracer("ninfer_gate", __version__)


def stop() -> None:
    """Send what is left, for a short time; without `start`, nothing."""
    provider, _Tracing.provider, _Tracing.tracer = _Tracing.provider, None, None
    if provider is not None:
        provider.force_flush(_FLUSH_MILLISECONDS)


def span(name: str, **facts: str | int | float) -> AbstractContextManager[Span]:
    """A span around what is done inside; spans inside it are its parts."""
    tracer = _Tracing.tracer
    return _SILENT if tracer is None else _traced(tracer, name, facts)


class _Open:
    def __init__(self, under: Any) -> None:
        self._under = under

    def told(self, name: str, facts: Facts) -> None:
        """See `Span.told`."""
        self._under.update_name(name)
        self._under.set_attributes(_named(facts))


@contextmanager
def _traced(tracer: Any, name: str, facts: Facts) -> Iterator[Span]:
    # What an exception says may be anything, a path or a statement: its kind is told, its text is not.
    with tracer.start_as_current_span(
        name, attributes=_named(facts), record_exception=False, set_status_on_exception=False
    ) as under:
        try:
            yield _Open(under)
        except BaseException as error:
            under.set_attribute("error.type", type(error).__name__)
            raise


def _named(facts: Facts) -> dict[str, str | int | float]:
    """Attributes have a room of their own, unless they are named by a convention."""
    return {name if "." in name else f"ninfer_gate.{name}": value for name, value in facts.items()}
