"""Requests made up from the description: the server keeps to it, and none ends in a failure of it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from episodica.classifier.model_folder import ModelFolder
from episodica.serve.app import guarded
from episodica.web.guard import App

schemathesis = pytest.importorskip("schemathesis")
from schemathesis import GenerationMode, openapi  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

KEPT = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)
WITHOUT_INPUT = {
    "GET /classes",
    "GET /health",
    "GET /metrics",
    "GET /model",
    "GET /history",
    "GET /quality",
    "GET /map",
    "GET /export/model.zip",
    "GET /job",
    "DELETE /job",
}  # there is nothing to get wrong
ELSEWHERE = {"GET /export/onnx.zip", "POST /import"}  # one is slow, the other takes what nobody makes up


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_the_server_keeps_to_its_description(
    folder: ModelFolder, serving: Callable[[App], str], mode: GenerationMode
) -> None:
    schema = openapi.from_url(f"{serving(guarded(folder))}openapi.json")
    asked = set()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[attr-defined]
        if operation.label in ELSEWHERE or (mode is GenerationMode.NEGATIVE and operation.label in WITHOUT_INPUT):
            continue

        @settings(
            max_examples=15,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def keeps(case: Any) -> None:
            case.call_and_validate(checks=KEPT)
            asked.add(case.operation.label)

        keeps()
    assert len(asked) >= 4
