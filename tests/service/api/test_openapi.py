"""The OpenAPI document is part of the product: its examples run, and every error in it can be had."""

import re
from typing import Any

import pytest

from service.api.openapi import operations
from service.api.problems import MEDIA_TYPE
from service.errors import ERRORS
from tests.service.api.json_schema import faults
from tests.service.api.provocations import PROVOCATIONS, example_call, shared
from tests.service.api.world import World

WITHOUT_TOKEN = ("/v1/oidc/token",)  # it is for who has none
# tests/service/access runs these: one needs an issuer that signs, the other ends the project.
NOT_HERE = {("post", "/v1/oidc/token"), ("delete", "/v1/project")}


@pytest.fixture(scope="module")
def document(api: World) -> Any:
    """The document as the service hands it out."""
    answer = api.call("GET", "/openapi.json")
    answer.raise_for_status()
    return answer.json()


def declared_errors(document: Any) -> set[tuple[str, str, str]]:
    """(method, path, code) of every error."""
    return {
        (method, path, code)
        for path, method, operation in operations(document)
        for answer in operation["responses"].values()
        for code in answer.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {})
    }


def test_every_operation_says_what_it_is(document: Any) -> None:
    for path, method, operation in operations(document):
        place = f"{method} {path}"
        assert operation.get("summary"), place
        assert operation.get("description"), place
        assert operation["tags"], place
        for status, answer in operation["responses"].items():
            assert answer["description"] not in ("", "Successful Response"), f"{place} {status}"
            for content in answer.get("content", {}).values():
                assert content["schema"], f"{place} {status}"
        if path.startswith("/v1") and path not in WITHOUT_TOKEN:
            assert operation["security"], place
            assert not {"401", "429", "500", "503"} - set(operation["responses"]), place
        assert "HTTPValidationError" not in str(operation), place


def test_references_lead_somewhere(document: Any) -> None:
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(re.findall(r"'(#/[^']+)'", str(document))) <= known


def test_every_example_runs(api: World, document: Any) -> None:
    ran = 0
    for path, method, operation in operations(document):
        if (method, path) in NOT_HERE:
            continue
        contents = operation.get("requestBody", {}).get("content", {})
        bodies = [
            (kind, example["value"])
            for kind, content in contents.items()
            for example in content["examples"].values()
        ]
        assert bodies or not contents, f"{method} {path} has a body without an example"
        for kind, body in bodies or [(None, None)]:
            if kind == "application/json":
                schema = contents[kind]["schema"]
                assert not faults(schema, body, document), f"{method} {path}"
            if operation.get("x-requires-store"):
                continue  # tests of uploads in parts run these where there is such a store
            answer = example_call(api, operation, method, path, kind, body)
            place = f"{method} {path} {answer.status_code} {answer.text[:500]}"
            assert answer.is_success, place
            described = operation["responses"][str(answer.status_code)]
            kinds = described.get("content", {})
            if method == "head" or not kinds:
                assert not answer.content, place
                continue
            media = answer.headers["content-type"].partition(";")[0]
            assert media in kinds, place
            if media == "application/json":
                assert not faults(kinds[media]["schema"], answer.json(), document), place
            ran += 1
    assert ran > 25


def test_every_declared_error_is_provoked_and_no_other(document: Any) -> None:
    declared = declared_errors(document)
    ours = {(method, path, code) for method, path, code in declared if code not in shared()}
    assert ours == set(PROVOCATIONS)
    assert {code for _, _, code in declared} <= {error.code for error in ERRORS}


@pytest.mark.parametrize("key", PROVOCATIONS, ids=lambda key: f"{key[0]} {key[1]} {key[2]}")
def test_provocation(api: World, document: Any, key: tuple[str, str, str]) -> None:
    method, path, code = key
    answer = PROVOCATIONS[key](api)
    check_problem(document, answer, method, path, code)


@pytest.mark.parametrize("code", sorted(shared()))
def test_errors_of_every_route(api: World, document: Any, code: str) -> None:
    tried, declared = 0, declared_errors(document)
    for path, method, operation in operations(document):
        if operation.get("security") and (method, path, code) in declared:
            with shared()[code](api):
                answer = example_call(api, operation, method, path)
            check_problem(document, answer, method, path, code)
            tried += 1
    assert tried > (7 if code == "scope_missing" else 20)


def check_problem(document: Any, answer: Any, method: str, path: str, code: str) -> None:
    """The answer is this problem, and the document says so."""
    error = {error.code: error for error in ERRORS}[code]
    assert answer.status_code == error.status, answer.text
    described = document["paths"][path][method]["responses"][str(error.status)]["content"][MEDIA_TYPE]
    assert code in described["examples"]
    if method == "head":
        return
    assert answer.headers["content-type"] == MEDIA_TYPE
    problem = answer.json()
    assert problem["code"] == code, problem
    assert not faults(described["schema"], problem, document), problem
    assert problem["status"] == error.status
    assert problem["detail"].endswith((".", "?", "!")), problem
    assert "where" not in problem or problem["where"].items() <= problem["faults"][0].items()
