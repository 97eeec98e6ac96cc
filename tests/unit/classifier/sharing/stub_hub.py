"""As much of the Hugging Face Hub as it takes to send files and to fetch them, in this process."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class StubHub:
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

    def info(self, repository: str, revision: str) -> dict[str, Any] | None:
        commit = self.heads.get(repository) if revision == "main" else revision
        files = self.commits.get(f"{repository}@{commit}")
        if files is None:
            return None
        siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
        return {"id": repository, "modelId": repository, "sha": commit, "siblings": siblings}


@contextmanager
def serving(hub: StubHub) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append(self.path)
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[:2] == ["api", "models"]:
                revision = parts[5] if len(parts) > 5 else "main"
                return self._answer(hub.info("/".join(parts[2:4]), revision))
            repository, commit, name = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
            data = hub.commits.get(f"{repository}@{commit}", {}).get(name)
            if data is None:
                return self._answer(None)
            etag = {"ETag": f'"{sha1(data).hexdigest()}"', "X-Repo-Commit": commit}
            return self._send(200, data, {**etag, "Content-Type": "application/octet-stream"})

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hub.asked.append(self.path)
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[1:3] == ["repos", "create"]:
                return self._answer(hub.create(json.loads(body)))
            if parts[1] == "validate-yaml":
                return self._answer({"errors": [], "warnings": []})
            repository = "/".join(parts[2:4])
            if parts[4] == "preupload":
                names = [file["path"] for file in json.loads(body)["files"]]
                plain = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
                return self._answer({"files": [{"path": name, **plain} for name in names]})
            commit = hub.commit(repository, [json.loads(line) for line in body.splitlines() if line.strip()])
            return self._answer(
                {"commitUrl": f"https://huggingface.co/{repository}/commit/{commit}", "commitOid": commit}
            )

        def _answer(self, found: Any) -> None:
            headers = {"Content-Type": "application/json"}
            if found is None:
                return self._send(404, b"{}", {**headers, "X-Error-Code": "RepoNotFound"})
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
