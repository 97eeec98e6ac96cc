"""What a published page may say of an error."""

from pathlib import Path

import pytest

from episodica.report.discovery import publishable


@pytest.mark.parametrize(
    ("said", "published"),
    [
        ("/home/me/x/y.png cannot be read", "y.png cannot be read"),
        (
            "[Errno 2] No such file: '/srv/data'; see https://host/a/b",
            "[Errno 2] No such file: 'data'; see https://host/a/b",
        ),
        ("the loss is 1/2 of a/b in runs/erd at step 3", "the loss is 1/2 of a/b in runs/erd at step 3"),
        ("/my runs/erd-1/events.jsonl is damaged: /tmp", "erd-1/events.jsonl is damaged: /tmp"),
    ],
)
def test_files_are_named_without_their_place(said: str, published: str) -> None:
    assert publishable(said, Path("/my runs/erd-1")) == published
