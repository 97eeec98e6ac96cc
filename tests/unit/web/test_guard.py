"""The guard lets this machine in, and others only with the token."""

import asyncio
from unittest.mock import AsyncMock

import pytest

from episodica.errors import InputError
from episodica.web.guard import HEADERS, Guard, check_binding, is_local

pytest.importorskip("fastapi")
from fastapi import FastAPI

from unit.serve.asking import Asker

SECRET = "a-secret-of-enough-letters"


def client(host: str = "localhost", token: str | None = None, base_url: str = "http://localhost:8000") -> Asker:
    app = FastAPI()
    app.get("/")(lambda: "page")
    app.get("/health")(lambda: "well")
    app.post("/change")(lambda: "changed")
    return Asker(Guard(app, host, token), base_url)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"])
def test_this_machine_needs_no_token(host):
    assert is_local(host)
    check_binding(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "localhost.example.org", "example.org", ""])
def test_other_hosts_need_a_token(host):
    assert not is_local(host)
    with pytest.raises(InputError, match="--token"):
        check_binding(host, None)
    check_binding(host, SECRET)


@pytest.mark.parametrize(
    "token", ["", "short", "has a space in the middle", "accents-ééééééééééééé", "line\nbreak-and-more-letters"]
)
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token):
    with pytest.raises(InputError, match="16 characters"):
        check_binding("localhost", token)
    with pytest.raises(InputError):
        Guard(FastAPI(), "0.0.0.0", token)


@pytest.mark.parametrize("path", ["/", "/health", "/nothing"])
def test_every_answer_has_the_headers(path):
    assert HEADERS.items() <= dict(client().get(path).headers).items()


def test_refusals_have_the_headers_too():
    assert HEADERS.items() <= dict(client(base_url="http://evil.example").get("/").headers).items()


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8000", "[::1]:8000", "192.168.1.7:8000"])
def test_names_of_this_machine_and_numbers_are_answered(host):
    assert client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil@localhost",
        "localhost:port",
        "",
        "0x7f.1",
        "[evil]",
        "a b",
        "localhost,evil.example",
    ],
)
def test_other_names_are_refused(host):
    assert client().get("/", headers={"host": host}).status_code == 421


def test_the_name_that_was_bound_is_answered():
    assert client("lab.example", SECRET, "http://lab.example").get("/health").status_code == 200
    assert client("lab.example", SECRET, "http://other.example").get("/health").status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9", "http://localhost"])
def test_pages_of_other_sites_are_refused(origin):
    assert client().ask("POST", "/change", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pictures_and_frames_of_other_sites_get_nothing(site):
    """Such a request has no Origin."""
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    assert client().get("/export", headers=headers).status_code == 403
    assert client().get("/", headers={**headers, "sec-fetch-dest": "iframe"}).status_code == 403
    visit = {**headers, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client().get("/", headers=visit).status_code == 200
    assert client().get("/export", headers=visit).status_code == 403
    assert client().get("/export", headers={"sec-fetch-site": "same-origin"}).status_code == 404


def test_the_own_page_may_change_things():
    assert client().ask("POST", "/change", headers={"origin": "http://localhost:8000"}).status_code == 200


def test_without_the_token_nothing_but_health_is_told():
    remote = client("0.0.0.0", SECRET, "http://10.0.0.1:8000")
    assert remote.get("/health").status_code == 200
    refused = remote.get("/")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "page" not in refused.text


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer wrong"},
        {"authorization": SECRET},
        {"authorization": f"Basic {SECRET}"},
        {"cookie": f"episodica-8000={SECRET}"},
        {"cookie": "episodica-8000=; ;;="},
        {"authorization": "Bearer é"},
    ],
)
def test_a_wrong_token_is_refused(headers):
    remote = client("0.0.0.0", SECRET, "http://10.0.0.1:8000")
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    assert remote.get("/", headers=raw).status_code == 401
    assert remote.get("/?token=wrong").status_code == 401


def test_the_token_as_a_header():
    remote = client("0.0.0.0", SECRET, "http://10.0.0.1:8000")
    assert remote.get("/", headers={"authorization": f"Bearer {SECRET}"}).status_code == 200


def test_the_token_in_the_address_becomes_a_cookie_that_does_not_hold_it():
    remote = client("0.0.0.0", SECRET, "http://10.0.0.1:8000")
    welcome = remote.get(f"/?a=1&token={SECRET}")
    assert welcome.status_code == 303
    assert welcome.headers["location"] == "/?a=1"
    assert SECRET not in welcome.headers["set-cookie"]
    assert "HttpOnly" in welcome.headers["set-cookie"]
    assert "SameSite=Strict" in welcome.headers["set-cookie"]
    assert remote.get("/").status_code == 200


def test_the_welcome_never_leads_elsewhere():
    remote = client("0.0.0.0", SECRET, "http://10.0.0.1:8000")
    assert remote.get(f"http://10.0.0.1:8000//evil.example/?token={SECRET}").headers["location"] == "/evil.example/"


def test_web_sockets_are_not_served():
    with pytest.raises(NotImplementedError):
        asyncio.run(Guard(FastAPI())({"type": "websocket"}, AsyncMock(), AsyncMock()))
