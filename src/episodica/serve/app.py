"""`episodica serve`: a model behind HTTP, and the page that uses it. Needs the extra `web`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import FastAPI, File, Form, Header, Path, Query, Response, UploadFile
from fastapi.responses import FileResponse, PlainTextResponse, StreamingResponse

from episodica.classifier.class_names import class_name
from episodica.classifier.image_map import in_the_plane
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState
from episodica.data.decoding_process import DecodingProcess
from episodica.serve import changes, handlers, quality
from episodica.serve.additions import Addition, IfKnown, WhatAdded, add
from episodica.serve.description import held_out_strangeness, history, model_info
from episodica.serve.drift import Drift
from episodica.serve.groups import grouped
from episodica.serve.in_depth import in_depth
from episodica.serve.job import Jobs, Training
from episodica.serve.job_routes import job_routes
from episodica.serve.limits import BodyLimit, Limits
from episodica.serve.messages import (
    Changed,
    Classified,
    ClassList,
    Groups,
    Health,
    History,
    ImageMap,
    KeptImages,
    ModelInfo,
    Quality,
)
from episodica.serve.metrics import MEDIA_TYPE as METRICS_TYPE
from episodica.serve.metrics import Measured, Metrics
from episodica.serve.orders import Asked, ImagesToMove, ImagesToRemove, NewName, ToGroup, ToUndo, Who
from episodica.serve.pages import ADDRESSES
from episodica.serve.pictures import thumbnail
from episodica.serve.refusals import BODY, CHANGE, add_refusals, possible
from episodica.serve.streaming import MEDIA_TYPE as JSON_LINES
from episodica.serve.streaming import in_memory, lines, wants_lines
from episodica.serve.transfer_routes import transfer_routes
from episodica.serve.uploads import Refusal, Upload, UploadReader, check_count, checked_name, shown_name
from episodica.serve.worker import ModelWorker
from episodica.web.guard import App, Guard
from episodica.web.pages import MEDIA_TYPES

Images = Annotated[list[UploadFile], File(description="JPEG, PNG, WebP, BMP, GIF or TIFF")]
Support = Annotated[list[UploadFile], File(description="one or a few images of each class", default_factory=list)]
SupportClass = Annotated[list[str], Form(description="the class name of each support image", default_factory=list)]
Batch = Annotated[str | None, Form(max_length=64, description="requests of one batch are one line of the history")]


def guarded(
    folder: ModelFolder,
    host: str = "localhost",
    token: str | None = None,
    limits: Limits | None = None,
    decoder: DecodingProcess | None = None,
    first: ModelState | None = None,
    train: Training | None = None,
) -> App:
    """The application as it is served: the guard first, so that strangers cannot even send much.

    `first` is the model as long as there is no folder: it is made with the first class. `train` is what learning in
    depth does.
    """
    limits = limits or Limits()
    metrics = Metrics()
    app = Measured(application(folder, limits, decoder or DecodingProcess(), first, train, metrics), metrics)
    return Guard(BodyLimit(app, limits), host, token)


def application(
    folder: ModelFolder,
    limits: Limits,
    decoder: DecodingProcess,
    first: ModelState | None = None,
    train: Training | None = None,
    metrics: Metrics | None = None,
) -> FastAPI:
    metrics, drift = metrics or Metrics(), Drift()
    jobs = Jobs(train or partial(in_depth, folder))
    worker, reader = ModelWorker(folder, limits, first, lambda: jobs.version), UploadReader(limits, decoder)

    @asynccontextmanager
    async def until_closed(app: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.stop()
        worker.close()
        decoder.close()

    app = FastAPI(
        title="episodica",
        summary="Recognises classes from a few images each.",
        docs_url=None,  # they load scripts from elsewhere; /docs is a page of our own
        redoc_url=None,
        lifespan=until_closed,
    )

    @app.get("/model", responses={304: {"description": "nothing has changed"}, **possible(422, 503)})
    async def model(response: Response, if_none_match: Annotated[str | None, Header()] = None) -> ModelInfo:
        """What the model is, knows and can do. Asked with the `ETag` of the last answer, it is cheap."""
        if if_none_match == f'"{worker.version()}{drift.mark}"':
            return Response(status_code=HTTPStatus.NOT_MODIFIED)  # type: ignore[return-value]
        found = await worker.ask(lambda now, end: model_info(now, worker.version(), jobs.info, limits, drift))
        response.headers["etag"] = f'"{found.version}"'
        return found

    async def answered(asked: Sequence[Upload], support: handlers.Support) -> Classified:
        found, held_out = await worker.ask(
            lambda now, end: (
                handlers.classify(now, worker.questions, asked, support, reader, end),
                held_out_strangeness(now),
            )
        )
        if not support:
            metrics.images.update(answer.unknown for answer in found.answers)
            drift.note(found.state, [a.strangeness for a in found.answers if a.strangeness is not None])
            drift.distance(found.state, held_out)
        return found

    @app.get("/metrics", response_class=PlainTextResponse, responses=possible(503))
    async def measured() -> PlainTextResponse:
        """Requests, latencies, the share of unknown images and drift, in the text format of Prometheus."""
        now = await worker.ask(lambda now, end: now)
        found = drift.distance(now.state.id, held_out_strangeness(now))
        return PlainTextResponse(metrics.text(found.value, found.images, found.moved), media_type=METRICS_TYPE)

    @app.post(
        "/classify",
        responses={
            200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}},
            **possible(*BODY),
        },
    )
    async def classify(
        images: Images,
        support: Support,
        support_class: SupportClass,
        accept: Annotated[str | None, Header(description="`application/jsonl`: a line for each image")] = None,
    ) -> Classified:
        """Recognise images by the classes of the model or, where support images come with them, by theirs.

        The n-th `support_class` is the class name of the n-th `support` image. Asked for JSON Lines, it answers each
        image on a line of its own as soon as it can, and an image that cannot be read by a line with an `error`.
        """
        check_count(len(images) + len(support), limits, "images")
        if len(support) != len(support_class):
            sentence = f"{len(support)} support images came with {len(support_class)} class names: send one for each"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "support_class")
        grouped: dict[str, list[Upload]] = {}
        for i, (name, upload) in enumerate(zip(support_class, uploads(support, "support"), strict=True)):
            grouped.setdefault(checked_name(name, limits, "support_class", i), []).append(upload)
        if not wants_lines(accept):
            return await answered(uploads(images, "images"), grouped)
        if grouped:
            sentence = "JSON Lines are answered by the model's own classes: leave the support images out, or the header"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "support")
        asked = lines(await in_memory(images), lambda upload: answered([upload], {}))
        return StreamingResponse(asked, media_type=JSON_LINES)  # type: ignore[return-value]

    @app.get("/classes", responses=possible(503))
    async def classes() -> ClassList:
        """The classes that the model knows."""
        return await worker.ask(lambda now, end: handlers.class_list(now))

    @app.post("/classes", responses=possible(*CHANGE))
    async def add_class(
        name: Annotated[str, Form()], images: Images, who: Who, replace: Annotated[bool, Form()] = False
    ) -> Changed:
        """Remember a class from one or a few images, all of them or none; the images are kept in the model."""
        check_count(len(images), limits, "images")
        called, given = checked_name(name, limits, "name"), uploads(images, "images")
        return await worker.ask(
            lambda now, end: changes.remember(now, worker, called, given, replace, who, reader, end)
        )

    @app.post("/classes/rename", responses=possible(*CHANGE))
    async def rename_class(order: NewName, who: Who) -> Changed:
        """Give a class another name, or put it together with the class that has it."""
        name, to = class_name(order.name), checked_name(order.to, limits, "to")
        return await worker.ask(lambda now, end: changes.rename(now, worker, name, to, order.merge, who, order.asked))

    @app.delete("/classes", responses=possible(404, 409, 422, 503))
    async def remove_class(name: Annotated[str, Query()], who: Who) -> Changed:
        """Forget a class with its images, for good: also from the history."""
        return await worker.ask(lambda now, end: changes.forget(now, worker, class_name(name), who))

    @app.get("/images", responses=possible(404, 422, 503))
    async def images_of_class(name: Annotated[str, Query(alias="class")]) -> KeptImages:
        """The images that are kept of a class."""
        return await worker.ask(lambda now, end: handlers.kept_images(now, class_name(name)))

    @app.post("/images", responses=possible(*CHANGE))
    async def add_images(
        name: Annotated[str, Form(alias="class")],
        images: Images,
        who: Who,
        if_known: Annotated[IfKnown, Form(description="what to do with an image of another class")] = "leave",
        what: Annotated[WhatAdded, Form(description="what the history calls it")] = "add",
        batch: Batch = None,
        asked: Annotated[Asked, Form()] = [],  # noqa: B006 - FastAPI copies it
    ) -> Changed:
        """Add images to a class, new or known. Each has a result; those that are no images do not stop the others."""
        check_count(len(images), limits, "images")
        called = checked_name(name, limits, "class")
        wish = Addition(called, uploads(images, "images"), if_known, what, batch, asked)
        return await worker.ask(lambda now, end: add(now, worker, wish, who, reader, end))

    @app.post("/images/remove", responses=possible(*CHANGE))
    async def remove_images(order: ImagesToRemove, who: Who) -> Changed:
        """Take single images out of their classes."""
        return await worker.ask(lambda now, end: changes.remove(now, worker, order.digests, who, order.asked))

    @app.post("/images/move", responses=possible(*CHANGE))
    async def move_images(order: ImagesToMove, who: Who) -> Changed:
        """Put single images into another class, new or known."""
        name = checked_name(order.name, limits, "class")
        return await worker.ask(lambda now, end: changes.move(now, worker, order.digests, name, who, order.asked))

    @app.get(
        "/images/{digest}",
        response_class=Response,
        responses={200: {"content": {"image/png": {}, "image/jpeg": {}}}, **possible(404, 422, 503)},
    )
    async def image(
        digest: Annotated[str, Path(pattern="^[0-9a-f]{32}$")],
        side: Annotated[int | None, Query(ge=16, le=256, description="of a small JPEG instead")] = None,
    ) -> Response:
        """An image of a class, as the model keeps it."""
        data, size = await worker.ask(lambda now, end: (now.picture(digest), now.recogniser.image_size))
        if data is None:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is no such image")
        if side is None:
            return Response(data, media_type="image/png")
        small = await worker.beside(lambda: thumbnail(data, min(side, size)))
        return Response(small, media_type="image/jpeg")

    @app.get("/history", responses=possible(503))
    async def changes_so_far() -> History:
        """What was changed, by whom and when; the newest first."""
        return await worker.ask(lambda now, end: history(now, worker.version()))

    @app.post("/history/undo", responses=possible(*CHANGE))
    async def undo(order: ToUndo, who: Who) -> Changed:
        """Undo the last change, if it is the one that the client means."""
        return await worker.ask(lambda now, end: changes.undo(now, worker, order.number, who))

    @app.post("/groups", responses=possible(*BODY))
    async def groups(order: ToGroup) -> Groups:
        """Put images that were asked about together by likeness."""
        return await worker.ask(lambda now, end: grouped(now, worker.questions, order.asked))

    @app.get("/quality", responses=possible(409, 503))
    async def how_good() -> Quality:
        """How good the model is: each image is asked for as if it had never come."""
        return await worker.ask(lambda now, end: quality.measured(now))

    @app.get("/map", responses=possible(409, 503))
    async def image_map() -> ImageMap:
        """All images in the plane, those that are alike near each other."""
        id, (rows, points) = await worker.ask(lambda now, end: (now.state.id, quality.rows_and_points(now)))
        with worker.heavy():
            places = (await asyncio.to_thread(in_the_plane, rows)).tolist()
        lines = zip(points, places, strict=True)
        return ImageMap(state=id, points=[point.model_copy(update={"x": x, "y": y}) for point, (x, y) in lines])

    @app.get("/health")
    async def health() -> Health:
        """Whether the server answers; needs no token and tells nothing else."""
        return Health()

    app.include_router(transfer_routes(folder, worker, reader))
    app.include_router(job_routes(jobs, worker))
    _add_pages(app)
    add_refusals(app)
    return app


def uploads(files: Sequence[UploadFile], field: str) -> list[Upload]:
    return [Upload(field, i, shown_name(file.filename), file.file) for i, file in enumerate(files)]


def _add_pages(app: FastAPI) -> None:
    def add(path: str, file: FilePath) -> None:
        media_type = MEDIA_TYPES[file.suffix]
        app.add_api_route(path, lambda: FileResponse(file, media_type=media_type), include_in_schema=False)

    for path, file in ADDRESSES.items():
        add(path, file)
