"""What the pages say about clients and containers works, as far as it can be tried here."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from episodica.classifier.model_folder import ModelFolder
from episodica.serve.app import guarded
from episodica.web.guard import App
from unit.serve.conftest import png

ROOT = Path(__file__).parents[3]


def test_the_client_of_the_page_gets_its_answers(
    folder: ModelFolder, serving: Callable[[App], str], glyphs: np.ndarray, tmp_path: Path
) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/serve.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(block.strip().splitlines()) <= 10
    (tmp_path / "a.png").write_bytes(png(glyphs[0, 0]))
    address = serving(guarded(folder)).rstrip("/")
    program = f"{block}\nfor found in classify({address!r}, {[str(tmp_path / 'a.png')]!r}): print(json.dumps(found))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["class"] == "ka"


def test_the_container_serves_as_a_user_without_rights(folder: ModelFolder, serving: Callable[[App], str]) -> None:
    lines = [line.split(maxsplit=1) for line in (ROOT / "Dockerfile").read_text().splitlines() if line.strip()]
    said = {words[0]: words[1] for words in lines if not words[0].startswith("#")}
    order = [words[0] for words in lines if not words[0].startswith("#")]
    assert said["USER"] not in ("0", "root")
    assert order.index("USER") > max(i for i, word in enumerate(order) if word == "RUN")
    entry = json.loads(said["ENTRYPOINT"])
    assert entry[:3] == ["episodica", "serve", said["VOLUME"]]
    assert entry[entry.index("--port") + 1] == said["EXPOSE"]
    assert "TOKEN" not in said.get("ENV", "")
    _, *check = json.loads(said["HEALTHCHECK"].removeprefix("CMD"))
    address = serving(guarded(folder)).rstrip("/").replace("localhost", "127.0.0.1")
    alive = [part.replace(f"http://127.0.0.1:{said['EXPOSE']}", address) for part in check]
    assert subprocess.run([sys.executable, *alive], check=False).returncode == 0
    for name in re.findall(r"^COPY (.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
        assert all((ROOT / part).exists() for part in name.split())
