"""As much of the Hugging Face Hub as it takes to send files and to fetch them, in this process."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote


class StubHub:
    """Repositories are called as in addresses: `owner/name`, and `datasets/owner/name`."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, bytes]] = {}  # repository@commit -> files
        self.heads: dict[str, str] = {}
        self.private: dict[str, bool] = {}
        self.asked: list[str] = []

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        repository = f"{body['organization']}/{body['name']}" if body.get("organization") else body["name"]
        self.private[repository] = body.get("visibility") == "private" or body.get("private") is True
        if repository not in self.heads:
            self.put(repository, {})
        return {"url": f"https://huggingface.co/{repository}"}

    def put(self, repository: str, files: dict[str, bytes]) -> str:
        commit = sha1(repr((self.heads.get(repository), sorted(files.items()))).encode()).hexdigest()
        self.commits[f"{repository}@{commit}"] = files
        self.heads[repository] = commit
        return commit

    def commit(self, repository: str, lines: list[dict[str, Any]]) -> str:
        files = dict(self.commits[f"{repository}@{self.heads[repository]}"])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        return self.put(repository, files)

    def files(self, repository: str, revision: str) -> dict[str, bytes] | None:
        return self.commits.get(f"{repository}@{self._commit(repository, revision)}")

    def info(self, repository: str, revision: str) -> dict[str, Any] | None:
        files, commit = self.files(repository, revision), self._commit(repository, revision)
        if files is None:
            return None
        siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
        return {"id": repository, "modelId": repository, "sha": commit, "siblings": siblings}

    def tree(self, repository: str, revision: str, folder: str) -> list[dict[str, Any]] | None:
        """What is in a folder, as the Hub lists it; none where there is no such folder."""
        files = self.files(repository, revision) or {}
        below = [name for name in files if name.startswith(f"{folder}/" if folder else "")]
        depth = len(folder.split("/")) if folder else 0
        inside = sorted({"/".join(name.split("/")[: depth + 1]) for name in below})
        return [self._entry(files, name) for name in inside] if below else None

    def paths(self, repository: str, revision: str, names: list[str]) -> list[dict[str, Any]]:
        files = self.files(repository, revision) or {}
        return [self._entry(files, name) for name in names if any(f"{one}/".startswith(f"{name}/") for one in files)]

    def _commit(self, repository: str, revision: str) -> str | None:
        return self.heads.get(repository) if revision == "main" else revision

    def _entry(self, files: dict[str, bytes], name: str) -> dict[str, Any]:
        if name in files:
            data = files[name]
            return {
                "type": "file",
                "path": name,
                "size": len(data),
                "oid": sha1(b"blob %d\0" % len(data) + data).hexdigest(),
            }
        return {"type": "directory", "path": name, "size": 0, "oid": sha1(name.encode()).hexdigest()}


@contextmanager
def serving(hub: StubHub) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append(self.path)
            if self.path.startswith("/api/"):
                repository, (what, revision, *inner) = self._asked()
                if what == "tree":
                    return self._answer(hub.tree(repository, revision, "/".join(inner)), "EntryNotFound")
                return self._answer(hub.info(repository, revision))
            repository, (_, revision, *inner) = self._asked()
            data = (hub.files(repository, revision) or {}).get("/".join(inner))
            if data is None:
                return self._answer(None)
            headers = {"ETag": f'"{sha1(data).hexdigest()}"', "X-Repo-Commit": revision}
            headers |= {"Content-Type": "application/octet-stream"}
            if asked := self.headers.get("Range"):
                first, last = map(int, asked.removeprefix("bytes=").split("-"))
                whole, data = len(data), data[first : last + 1]
                return self._send(206, data, {**headers, "Content-Range": f"bytes {first}-{last}/{whole}"})
            return self._send(200, data, headers)

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hub.asked.append(self.path)
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[1:3] == ["repos", "create"]:
                return self._answer(hub.create(json.loads(body)))
            if parts[1] == "validate-yaml":
                return self._answer({"errors": [], "warnings": []})
            repository, rest = self._asked()
            if rest[0] == "paths-info":
                return self._answer(hub.paths(repository, rest[1], parse_qs(body.decode())["paths"]))
            if rest[0] == "preupload":
                names = [file["path"] for file in json.loads(body)["files"]]
                plain = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
                return self._answer({"files": [{"path": name, **plain} for name in names]})
            commit = hub.commit(repository, [json.loads(line) for line in body.splitlines() if line.strip()])
            return self._answer(
                {"commitUrl": f"https://huggingface.co/{repository}/commit/{commit}", "commitOid": commit}
            )

        def _asked(self) -> tuple[str, list[str]]:
            """The repository, and what of it: `[what, revision, *path]`."""
            parts = [unquote(part) for part in self.path.partition("?")[0].strip("/").split("/")]
            if parts[0] == "api":
                parts = parts[2:] if parts[1] == "models" else parts[1:]
            many = 3 if parts[0] == "datasets" else 2
            return "/".join(parts[:many]), parts[many:] or ["revision", "main"]

        def _answer(self, found: Any, missing: str = "RepoNotFound") -> None:
            headers = {"Content-Type": "application/json"}
            if found is None:
                return self._send(404, b"{}", {**headers, "X-Error-Code": missing})
            return self._send(200, json.dumps(found).encode(), headers)

        def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
