"""`/export` and `/import`: a model leaves as a ZIP, or comes as one."""

from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from episodica.classifier.model_folder import ModelFolder
from episodica.serve import transfer
from episodica.serve.limits import MODELS_COME_TO
from episodica.serve.messages import Changed
from episodica.serve.orders import Who
from episodica.serve.refusals import CHANGE, possible
from episodica.serve.uploads import Refusal, UploadReader
from episodica.serve.worker import ModelWorker

ZIP_BODY = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
ZIP: dict[int | str, dict[str, Any]] = {200: {"content": ZIP_BODY}}


def transfer_routes(folder: ModelFolder, worker: ModelWorker, reader: UploadReader) -> APIRouter:
    routes = APIRouter()

    @routes.get("/export/model.zip", response_class=StreamingResponse, responses={**ZIP, **possible(409, 503)})
    async def export_model() -> StreamingResponse:
        """The model's folder."""
        if not folder.exists:
            raise Refusal(HTTPStatus.CONFLICT, "there is nothing to export before the first class")
        with worker.heavy():
            file = await worker.beside(lambda: transfer.model_zip(folder))
        return StreamingResponse(transfer.in_chunks(file), **_download("model.zip"))

    @routes.get("/export/onnx.zip", response_class=StreamingResponse, responses={**ZIP, **possible(409, 422, 503)})
    async def export_as_onnx() -> StreamingResponse:
        """The model as ONNX, for other programs."""
        if not folder.exists:
            raise Refusal(HTTPStatus.CONFLICT, "there is nothing to export before the first class")
        with worker.heavy():
            file = await worker.beside(lambda: transfer.onnx_zip(folder))
        return StreamingResponse(transfer.in_chunks(file), **_download("onnx.zip"))

    @routes.post(MODELS_COME_TO, responses=possible(*CHANGE), openapi_extra={"requestBody": {"content": ZIP_BODY}})
    async def take_in(request: Request, who: Who) -> Changed:
        """Add the classes of another model, which comes as the ZIP of its folder."""
        with worker.heavy(), TemporaryDirectory() as place:
            archive = Path(place) / "sent.zip"
            with archive.open("wb") as file:
                await transfer.received(request.stream(), file)
            sent = await worker.beside(lambda: transfer.guest(archive, reader, Path(place) / "model"))
            return await worker.ask(lambda now, end: transfer.take_in(now, worker, sent, who))

    return routes


def _download(name: str) -> dict[str, Any]:
    return {"media_type": "application/zip", "headers": {"content-disposition": f'attachment; filename="{name}"'}}
