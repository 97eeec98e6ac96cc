"""How much a client may ask for, and the part of it that is enforced while a request still arrives."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.exceptions import HTTPException

from episodica.web.guard import App, Message, Receive, Scope, Send

MIB = 2**20
MODELS_COME_TO = "/import"


@dataclass(frozen=True)
class Limits:
    body_bytes: int = 32 * MIB  # of a request
    image_bytes: int = 24 * MIB  # a photo of 48 megapixels has 10 to 20
    image_pixels: int = 25_000_000  # to decode: of a larger JPEG a half, a quarter or an eighth of each side
    images: int = 200  # of a request
    name_length: int = 80  # characters of a class name
    arriving_seconds: float = 30  # for a request to arrive
    working_seconds: float = 20  # on one request
    arriving: int = 64  # requests at once, of which each may hold a body
    waiting: int = 32  # requests that wait for their turn to be worked on
    heavy: int = 3  # models that leave or come, and maps, at once
    model_bytes: int = 1024 * MIB  # of a model that is taken in
    model_seconds: float = 600  # for it to arrive


@dataclass
class BodyLimit:
    """An ASGI application around another one, which gets no more of a body than the limit, and not for ever.

    What a client says about the length is believed only where it is too long: chunks are counted as they come.
    """

    app: App
    limits: Limits = Limits()
    _here: int = field(init=False, default=0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        self._here += 1
        try:
            await self.app(scope, self._bounded(scope, receive), send)
        finally:
            self._here -= 1

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        announced = next((value for name, value in scope["headers"] if name.lower() == b"content-length"), b"0")
        most, seconds = self.limits.body_bytes, self.limits.arriving_seconds
        if scope["path"] == MODELS_COME_TO:
            most, seconds = self.limits.model_bytes, self.limits.model_seconds
        too_long = not announced.isdigit() or int(announced) > most
        taken, complete = 0, False
        ends = asyncio.get_running_loop().time() + seconds

        async def bounded() -> Message:
            nonlocal taken, complete
            if complete:
                return await receive()  # the news that the client has gone
            if too_long:
                raise self._too_long(most)
            if not taken and self._here > self.limits.arriving:
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at once: try again in a moment")
            try:
                async with asyncio.timeout_at(ends):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    HTTPStatus.REQUEST_TIMEOUT,
                    f"the request did not arrive within {seconds:g} seconds: send less at once",
                ) from None
            taken += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if taken > most:
                raise self._too_long(most)
            return message

        return bounded

    def _too_long(self, most: int) -> HTTPException:
        return HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a request may have {most // MIB} MiB: send fewer or smaller images at once",
        )
