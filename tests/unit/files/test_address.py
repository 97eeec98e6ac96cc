from pathlib import Path

import pytest

from episodica.errors import InputError
from episodica.files.address import Address


@pytest.mark.parametrize("text", ["s3://bucket/photos", Path("s3://bucket/photos"), "s3://bucket/photos/"])
def test_an_address_survives_being_a_path(text: str | Path) -> None:
    assert Address.parse(text) == Address("s3", "bucket/photos")
    assert str(Address.parse(text)) == "s3://bucket/photos"


@pytest.mark.parametrize("text", ["photos", "/data/photos", "C:/photos", "a:b", "./s3", "10:30/photos", ""])
def test_paths_of_this_machine_are_none(text: str) -> None:
    assert Address.parse(text) is None


@pytest.mark.parametrize(
    "text",
    ["file:///etc", "simplecache://s3/b", "s3://", "s3://bucket/../other", "s3://bucket//a", "zip://a::s3://b/c"],
)
def test_what_leads_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Address.parse(text)
