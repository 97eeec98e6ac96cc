"""A notebook as a page: text, code, and what the code printed and drew when the notebook was last run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def as_markdown(notebook: Path) -> str:
    cells = json.loads(notebook.read_text())["cells"]
    title, *rest = [part for cell in cells for part in _parts(cell)]
    link = f'<a href="{notebook.name}" download>Download this notebook</a>'
    download = f"{link} to run it yourself, with Jupyter in the environment that has episodica."
    return "\n\n".join([title, download, *rest]) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            yield f"```text\n{''.join(output['text']).rstrip()}\n```"
        elif "image/png" in output["data"]:
            picture = "".join(output["data"]["image/png"].split())
            yield f'<img class="output" alt="What the code above draws" src="data:image/png;base64,{picture}">'
        else:
            yield f"```text\n{''.join(output['data']['text/plain'])}\n```"
