"""What went wrong, as a page in the same style; the pages' own route class catches it, the API's answers stay as they are."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.dashboard.address import login, written
from service.dashboard.render import HEADERS, page
from service.errors import ServiceError
from service.records.errors import BadCursor

_TITLES = {
    400: "This address makes no sense",
    403: "Refused",
    404: "There is nothing here",
    409: "Not yet",
    429: "Too much at once",
}


class Problem(Exception):
    """A request that gets a page saying why instead of what it asked for; `status` is that of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class LoginNeeded(Exception):
    """Nobody is logged in."""


def missing(what: str) -> Problem:
    """There is no such thing, or it belongs to somebody else; both look the same."""
    return Problem(404, f"There is no {what} here by that name.")


def failure(request: Request, status: int, text: str) -> Response:
    """The page of an error; the application's own handlers may use it for what no route of ours answers."""
    title = _TITLES.get(status, "This did not work")
    return page(request, "error.html", status, number=status, title=title, text=text)


class PageRoute(APIRoute):
    """A route whose failures are pages, whose visitors log in first, and whose addresses hold no empty members."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of FastAPI inside ours."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            if request.method == "GET" and (tidy := _tidy(request)) is not None:
                return RedirectResponse(tidy, 303, HEADERS)
            try:
                return await handle(request)
            except LoginNeeded:
                return _to_login(request)
            except Problem as problem:
                return failure(request, problem.status, problem.text)
            except BadCursor:
                text = "The place in the list that this address names is not one of ours."
                return failure(request, 400, text)
            except RequestValidationError as error:
                return failure(request, 400, _complaint(error))
            except ServiceError as error:
                response = failure(request, error.status, error.detail)
                response.headers.update(error.headers)
                return response
            except HTTPException as error:
                return failure(request, error.status_code, str(error.detail))

        return handler


def _tidy(request: Request) -> str | None:
    # A form sends its empty fields along; what a person keeps or sends on is the address without them.
    pairs = request.query_params.multi_items()
    if all(value for _, value in pairs):
        return None
    return written(request.url.path, dict(pairs))


def _to_login(request: Request) -> Response:
    if request.headers.get("accept", "").startswith("text/event-stream"):
        return Response("log in first", 401, HEADERS)
    # A strict cookie stays at home when another site's link is followed. A page that goes on by itself asks from here,
    # with the cookie, and the login leads whoever has one straight on: a link in a pull request shows the run.
    if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
        return page(request, "again.html", again=login(request))
    return RedirectResponse(login(request), 303, HEADERS)


def _complaint(error: RequestValidationError) -> str:
    members = ", ".join(sorted({str(entry["loc"][-1]) for entry in error.errors()}))
    return f"What it says of {members} is nothing that can be asked for."
