"""What the site has besides the pages of docs/: pages from the root of the repository, notebooks and the reference."""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from addresses import ROOT, ROOT_PAGES, for_site
from canvas import page_style
from notebooks import as_markdown
from reference import reference_pages

DRAWN = ROOT / "docs" / "images" / "concepts"
LOGO = ROOT / "src" / "episodica" / "web" / "pages" / "icon.svg"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, address in ROOT_PAGES.items():
        files.append(File.generated(config, address, content=(ROOT / source).read_text()))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=as_markdown(notebook)))
    for name, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    files.append(File.generated(config, "assets/logo.svg", content=LOGO.read_text()))
    files.append(File.generated(config, "assets/drawn.css", content=page_style()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri.startswith("results/"):
        page.meta["search"] = {"boost": 0.5}  # their tables name every setting again and again
    return for_site(markdown, page.file.src_uri)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Drawn pictures become a part of the page, so that they follow its colours, which a reader may switch."""
    return re.sub(r'<img alt="([^"]*)" src="[^"]*images/concepts/(\w+)\.svg" ?/?>', _drawing, html)


def _drawing(image: re.Match[str]) -> str:
    svg = (DRAWN / f"{image[2]}.svg").read_text()
    return svg.replace("<svg ", f'<svg aria-label="{image[1]}" ', 1)
