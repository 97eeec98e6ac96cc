"""What a request gets that is not answered: always the same form, and nothing of what was sent."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from episodica.serve.messages import ErrorMessage
from episodica.serve.uploads import Refusal

DESCRIPTIONS = {
    400: "not a form that can be read",
    404: "there is nothing of this name",
    408: "the request did not arrive in time",
    409: "in the way of another change",
    413: "too many bytes, images or too much work",
    422: "a file that is no image, or a name that cannot be",
    503: "too many requests at once, or a damaged model",
}


def possible(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may refuse with, for its description."""
    return {status: {"model": ErrorMessage, "description": DESCRIPTIONS[status]} for status in statuses}


BODY = (400, 408, 413, 422, 503)  # of everything that takes a body
CHANGE = (*BODY, 404, 409)


def add_refusals(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        return _response(error.status, error.sentence, error.field, error.index)

    @app.exception_handler(HTTPException)
    async def not_http(request: Request, error: HTTPException) -> JSONResponse:
        return _response(error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        _, field, *place = (*first["loc"], None)
        sentence = f"{field or 'the form'}: {first['msg'].lower()}"
        index = place[0] if place and isinstance(place[0], int) else None
        return _response(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, str(field) if field else None, index)


def _response(
    status: int, detail: str, field: str | None = None, index: int | None = None, headers: Any = None
) -> JSONResponse:
    return JSONResponse(ErrorMessage(detail=detail, field=field, index=index).model_dump(), status, headers)
