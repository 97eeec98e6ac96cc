"""`episodica serve`: a model behind HTTP, and the page that uses it. Needs the extra `web`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import FastAPI, File, Form, Path, Query, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException

from episodica.classifier.class_names import class_name
from episodica.classifier.model_folder import ModelFolder
from episodica.data.decoding_process import DecodingProcess
from episodica.serve import handlers
from episodica.serve.limits import BodyLimit, Limits
from episodica.serve.messages import Classified, ClassList, ErrorMessage, Health
from episodica.serve.pages import ADDRESSES
from episodica.serve.uploads import Refusal, Upload, UploadReader, check_count, checked_name, shown_name
from episodica.serve.worker import ModelWorker
from episodica.web.guard import App, Guard
from episodica.web.pages import MEDIA_TYPES

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorMessage, "description": "not a form that can be read"},
    408: {"model": ErrorMessage, "description": "the request did not arrive in time"},
    413: {"model": ErrorMessage, "description": "too many bytes, images or too much work"},
    422: {"model": ErrorMessage, "description": "a file that is no image, or a name that cannot be"},
    503: {"model": ErrorMessage, "description": "too many requests at once, or a damaged model"},
}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": ErrorMessage, "description": "in the way of another change"}
}
MISSING: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorMessage, "description": "there is nothing of this name"}
}

Images = Annotated[list[UploadFile], File(description="JPEG, PNG, WebP, BMP, GIF or TIFF")]
Support = Annotated[list[UploadFile], File(description="one or a few images of each class", default_factory=list)]
SupportClass = Annotated[list[str], Form(description="the class name of each support image", default_factory=list)]


def guarded(
    folder: ModelFolder,
    host: str = "localhost",
    token: str | None = None,
    limits: Limits | None = None,
    decoder: DecodingProcess | None = None,
) -> App:
    """The application as it is served: the guard first, so that strangers cannot even send much."""
    limits = limits or Limits()
    return Guard(BodyLimit(application(folder, limits, decoder or DecodingProcess()), limits), host, token)


def application(folder: ModelFolder, limits: Limits, decoder: DecodingProcess) -> FastAPI:
    worker, reader = ModelWorker(folder, limits), UploadReader(limits, decoder)

    @asynccontextmanager
    async def until_closed(app: FastAPI) -> AsyncIterator[None]:
        yield
        worker.close()
        decoder.close()

    app = FastAPI(
        title="episodica",
        summary="Recognises classes from a few images each.",
        docs_url=None,  # they load scripts from elsewhere; /docs is a page of our own
        redoc_url=None,
        lifespan=until_closed,
    )

    @app.post("/classify", responses={**ERRORS})
    async def classify(images: Images, support: Support, support_class: SupportClass) -> Classified:
        """Recognise images by the classes of the model or, where support images come with them, by theirs.

        The n-th `support_class` is the class name of the n-th `support` image.
        """
        check_count(len(images) + len(support), limits, "images")
        if len(support) != len(support_class):
            sentence = f"{len(support)} support images came with {len(support_class)} class names: send one for each"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "support_class")
        grouped: dict[str, list[Upload]] = {}
        for i, (name, upload) in enumerate(zip(support_class, uploads(support, "support"), strict=True)):
            grouped.setdefault(checked_name(name, limits, "support_class", i), []).append(upload)
        asked = uploads(images, "images")
        return await worker.ask(lambda now, end: handlers.classify(now, asked, grouped, reader, end))

    @app.get("/classes", responses={503: ERRORS[503]})
    async def classes() -> ClassList:
        """The classes that the model knows."""
        return await worker.ask(lambda now, end: handlers.class_list(now.state))

    @app.post("/classes", responses={**ERRORS, **CONFLICT})
    async def add_class(
        name: Annotated[str, Form()], images: Images, replace: Annotated[bool, Form()] = False
    ) -> ClassList:
        """Remember a class from one or a few images; the images are kept in the model."""
        check_count(len(images), limits, "images")
        called, given = checked_name(name, limits, "name"), uploads(images, "images")
        return await worker.ask(
            lambda now, end: handlers.remember(now, worker.folder, called, given, replace, reader, end)
        )

    @app.delete("/classes", responses={422: ERRORS[422], 503: ERRORS[503], **CONFLICT, **MISSING})
    async def remove_class(name: Annotated[str, Query()]) -> ClassList:
        """Forget a class with its images, for good."""
        return await worker.ask(lambda now, end: handlers.forget(now, worker.folder, class_name(name)))

    @app.get(
        "/images/{digest}",
        response_class=Response,
        responses={200: {"content": {"image/png": {}}}, 422: ERRORS[422], 503: ERRORS[503], **MISSING},
    )
    async def image(digest: Annotated[str, Path(pattern="^[0-9a-f]{32}$")]) -> Response:
        """An image of a class, as the model keeps it."""
        data = await worker.ask(lambda now, end: now.pictures.get(digest))
        if data is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is no such image")
        return Response(data, media_type="image/png")

    @app.get("/health")
    async def health() -> Health:
        """Whether the server answers; needs no token and tells nothing else."""
        return Health()

    _add_pages(app)
    _add_refusals(app)
    return app


def uploads(files: Sequence[UploadFile], field: str) -> list[Upload]:
    return [Upload(field, i, shown_name(file.filename), file.file) for i, file in enumerate(files)]


def _add_pages(app: FastAPI) -> None:
    def add(path: str, file: FilePath) -> None:
        media_type = MEDIA_TYPES[file.suffix]
        app.add_api_route(path, lambda: FileResponse(file, media_type=media_type), include_in_schema=False)

    for path, file in ADDRESSES.items():
        add(path, file)


def _add_refusals(app: FastAPI) -> None:
    """Every refusal has the same form, and none repeats what was sent."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        return _error_response(error.status, error.sentence, error.field, error.index)

    @app.exception_handler(HTTPException)
    async def not_http(request: Request, error: HTTPException) -> JSONResponse:
        return _error_response(error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        _, field, *place = (*first["loc"], None)
        sentence = f"{field or 'the form'}: {first['msg'].lower()}"
        index = place[0] if place and isinstance(place[0], int) else None
        return _error_response(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, str(field) if field else None, index)


def _error_response(
    status: int, detail: str, field: str | None = None, index: int | None = None, headers: Any = None
) -> JSONResponse:
    return JSONResponse(ErrorMessage(detail=detail, field=field, index=index).model_dump(), status, headers)
