"""Decoding where it cannot do harm: a process of its own, whose memory and time are limited, and which is ended.

Headers tell most of what an image will cost (`image_limits`), but not all, and decoders have faults. So `serve` has the
images of its clients decoded here. The process has no more than its limits, and all that comes back from it is a
verdict and the bytes of a square; it is started again after it was ended.

Each message is a head of fixed size, and the bytes that it announces.
"""

import os
import resource
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Self
from weakref import finalize

import numpy as np
from PIL import AvifImagePlugin

from episodica.data.decode import Unreadable, decode

ASKED = struct.Struct("!IIQ")  # size of the square, most pixels, bytes that follow
ANSWER = struct.Struct("!?I")  # whether it worked, bytes that follow: a square, or why there is none
LONGEST_REASON = 2_000  # bytes
STARTING = 30.0  # seconds for a process to begin


@dataclass(frozen=True)
class DecodingLimits:
    memory: int = 1 << 30  # bytes
    seconds: int = 10  # of computing, for one image


@dataclass(eq=False)
class DecodingProcess:
    """`decode` as in `data.decode`, elsewhere and one image at a time. The process ends with its owner."""

    limits: DecodingLimits = DecodingLimits()
    _lock: Lock = field(init=False, default_factory=Lock)
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)
    _line: socket.socket = field(init=False)
    _end: finalize = field(init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def decode(self, data: bytes, size: int, name: str, max_pixels: int, seconds: float) -> np.ndarray:
        """uint8 [size, size, 3], within so many seconds by the clock, or `Unreadable`."""
        ends = monotonic() + seconds
        try:
            with self._lock:
                worked, answer = self._ask(data, size, max_pixels, ends)
        except TimeoutError:
            self.close()
            raise Unreadable(name, "takes too long to decode; send a smaller copy") from None
        except OSError:  # it has ended, or was ended by the system
            self.close()
            raise Unreadable(name, "takes more memory or time to decode than it may; send a smaller copy") from None
        if not worked:
            raise Unreadable(name, answer.decode("utf-8", "replace"))
        return np.frombuffer(bytearray(answer), np.uint8).reshape(size, size, 3)

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._end()
            self._process = None

    def _ask(self, data: bytes, size: int, max_pixels: int, ends: float) -> tuple[bool, bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._start()
        self._line.settimeout(max(ends - monotonic(), 0.001))
        self._line.sendall(ASKED.pack(size, max_pixels, len(data)) + data)
        worked, length = ANSWER.unpack(_receive(self._line, ANSWER.size, ends))
        if length != size * size * 3 if worked else length > LONGEST_REASON:
            raise ConnectionError("an answer of another length than any can have")
        return worked, _receive(self._line, length, ends)

    def _start(self) -> None:
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, str(self.limits.memory), str(self.limits.seconds)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self._end = finalize(self, _end, self._process, self._line)
        try:
            _receive(self._line, 1, monotonic() + STARTING)
        except OSError as error:
            self.close()
            raise RuntimeError("the process that decodes images does not start") from error


def _end(process: subprocess.Popen[bytes], line: socket.socket) -> None:
    line.close()
    process.kill()
    process.wait()


def _receive(line: socket.socket, length: int, ends: float | None = None) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        if ends is not None:
            line.settimeout(max(ends - monotonic(), 0.001))
        part = line.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("the other end is closed")
        parts += part
    return bytes(parts)


def serve(line: socket.socket, limits: DecodingLimits) -> None:
    """What the process does, until nobody asks any more."""
    _limit_memory(limits.memory)
    line.sendall(b"!")
    with suppress(ConnectionError):
        while True:
            size, max_pixels, length = ASKED.unpack(_receive(line, ASKED.size))
            data = _receive(line, length)
            _limit_time(limits.seconds)
            try:
                worked, answer = True, decode(data, size, "image", max_pixels).tobytes()
            except Unreadable as error:
                worked, answer = False, error.reason.encode("utf-8", "replace")[:LONGEST_REASON]
            line.sendall(ANSWER.pack(worked, len(answer)) + answer)


def _limit_memory(most: int) -> None:
    """Or to less, where the system allows no more. And nothing is written, not even a dump of the memory."""
    for what, bytes_ in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        limit = bytes_ if hard == resource.RLIM_INFINITY else min(bytes_, hard)
        resource.setrlimit(what, (limit, limit))


def _limit_time(seconds: int) -> None:
    """From now; the system ends the process when they are over."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, hard))


if __name__ == "__main__":
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # a thread takes memory, and there is one image at a time
    memory, seconds = map(int, sys.argv[1:])
    serve(socket.socket(fileno=os.dup(0)), DecodingLimits(memory, seconds))
