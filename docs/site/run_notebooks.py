"""Runs the notebooks of docs/notebooks, each in an empty folder, and keeps what they print and draw.

python docs/site/run_notebooks.py [--check]        # or: make notebooks; to check is to compare and to keep nothing
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    """The notebook with fresh outputs; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        private = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})  # no open ports
        work = Path(folder, "work")
        work.mkdir()
        where = {"metadata": {"path": str(work)}}
        NotebookClient(notebook, config=private, timeout=300, resources=where, coalesce_streams=True).execute()
    for cell in notebook.cells:
        cell.metadata = {}  # when a cell ran says nothing to readers
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/jpeg", None)  # the same picture again
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return notebook


def shown(notebook: NotebookNode) -> list[list[str]]:
    """What readers see below each cell of code, with every number as #: a computer may round otherwise than another."""
    return [
        [re.sub(r"[\d.]+", "#", _text(output)) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _text(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return " ".join(output.text.split())
    return "a picture" if "image/png" in output.data else output.data["text/plain"]


def outdated(path: Path, fresh: NotebookNode) -> bool:
    return shown(fresh) != shown(nbformat.read(path, as_version=4))


def main(check: bool) -> int:
    wrong = 0
    for path in NOTEBOOKS:
        fresh = executed(path)
        if check and outdated(path, fresh):
            print(f"{path.name} prints something else than it shows: say `make notebooks`", file=sys.stderr)
            wrong += 1
        elif not check:
            nbformat.write(fresh, path)
            print(path.name)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
