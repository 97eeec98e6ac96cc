"""The page of `episodica serve`: plain HTML, CSS and JavaScript modules, served as they lie here."""

from pathlib import Path

from episodica.web.pages import SHARED

HERE = Path(__file__).parent
PAGES = {"/": HERE / "index.html", "/docs": HERE / "interface.html"}
PARTS = (*sorted(path for path in HERE.iterdir() if path.suffix in (".css", ".js")), *SHARED)
ADDRESSES = {**PAGES, **{f"/pages/{path.name}": path for path in PARTS}}
