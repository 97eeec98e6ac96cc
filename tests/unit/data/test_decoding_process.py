import gc
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from episodica.data.decode import Unreadable, decode
from episodica.data.decoding_process import DecodingLimits, DecodingProcess
from unit.data.hostile_images import jpeg_with_scans
from unit.serve.conftest import png

PICTURE = png(np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8))
LARGE = png(np.zeros((4_000, 4_000, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def apart() -> Iterator[DecodingProcess]:
    with DecodingProcess() as process:
        yield process


def test_the_answer_is_that_of_decoding_here(apart: DecodingProcess) -> None:
    np.testing.assert_array_equal(apart.decode(PICTURE, 32, "a.png", 10_000, 60), decode(PICTURE, 32))


def test_a_refusal_is_that_of_decoding_here(apart: DecodingProcess) -> None:
    for data in (b"", b"hello", PICTURE[:90], LARGE):
        with pytest.raises(Unreadable) as here:
            decode(data, 32, "a.png", 10_000)
        with pytest.raises(Unreadable) as there:
            apart.decode(data, 32, "a.png", 10_000, 60)
        assert str(there.value) == str(here.value)


def test_an_image_that_takes_too_much_memory() -> None:
    with DecodingProcess(DecodingLimits(memory=60 << 20)) as process:
        with pytest.raises(Unreadable, match=r"^a\.png: "):
            process.decode(LARGE, 32, "a.png", 10**9, 60)
        assert process.decode(PICTURE, 32, "b.png", 10_000, 60).shape == (32, 32, 3)


LIMITED = """
import resource, sys
from episodica.data.decoding_process import DecodingProcess
resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))
with DecodingProcess() as process:
    print(process.decode(sys.stdin.buffer.read(), 32, "a.png", 10_000, 60).shape)
"""


def test_where_the_system_allows_less_memory_images_are_decoded() -> None:
    """A limit can only be lowered."""
    done = subprocess.run([sys.executable, "-c", LIMITED], input=PICTURE, capture_output=True, check=False)
    assert done.stdout == b"(32, 32, 3)\n", done.stderr.decode()


def test_an_image_that_takes_too_much_time(apart: DecodingProcess) -> None:
    slow = jpeg_with_scans(4_000, 90)
    with pytest.raises(Unreadable, match="too long"):
        apart.decode(slow, 32, "slow.jpg", 10**9, 0.05)
    assert apart.decode(PICTURE, 32, "b.png", 10_000, 60).shape == (32, 32, 3)


def test_an_image_that_takes_too_much_computing() -> None:
    with DecodingProcess(DecodingLimits(seconds=0)) as process:
        with pytest.raises(Unreadable, match="memory or time"):
            process.decode(jpeg_with_scans(6_000, 90), 32, "slow.jpg", 10**9, 60)
        assert process.decode(PICTURE, 32, "b.png", 10_000, 60).shape == (32, 32, 3)


def test_a_process_that_was_ended_is_started_again(apart: DecodingProcess) -> None:
    apart.decode(PICTURE, 32, "a.png", 10_000, 60)
    assert apart._process is not None
    apart._process.kill()
    apart._process.wait()
    assert apart.decode(PICTURE, 32, "b.png", 10_000, 60).shape == (32, 32, 3)


def test_the_process_ends_with_its_owner() -> None:
    owner = DecodingProcess()
    owner.decode(PICTURE, 32, "a.png", 10_000, 60)
    process = owner._process
    assert process is not None
    del owner
    gc.collect()
    assert process.returncode is not None
