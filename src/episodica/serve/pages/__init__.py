"""The page of `episodica serve`: plain HTML, CSS and JavaScript modules, served as they lie here.

- main: the frame, which view is shown, undo, language
- teach, class_view, ask, unknown, quality, history, model_view: a view each
- api: requests; model: what the server last said; asked: pictures that were asked about; strings: every word
- composer, tray, sources, intake, examine, camera: pictures on their way in
- answer, correct, grid, live, csv: answers
- matrix, curve, map, chart_parts: charts
- section, dialogs, messages, changes, icons, person: small things that views share
"""

from pathlib import Path

from episodica.web.pages import SHARED

HERE = Path(__file__).parent
PAGES = {"/": HERE / "index.html", "/docs": HERE / "interface.html"}
PARTS = (*sorted(path for path in HERE.iterdir() if path.suffix in (".css", ".js")), *SHARED)
ADDRESSES = {**PAGES, **{f"/pages/{path.name}": path for path in PARTS}}
