"""The reference: every command, setting, component and recipe, from the code that has them."""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files

from pydantic import BaseModel

from addresses import ROOT
from episodica.cli import VERBS
from episodica.cli.catalogue import KINDS, Setting, settings_in
from episodica.cli.screen import app
from episodica.config import RunConfig, sections
from episodica.registry import components, settings_of
from episodica.sweep.grid import plan
from episodica.sweep.recipe import packaged_recipes
from python_api import python_page

TITLES = {"methods": "Methods", "learners": "Learners", "backbones": "Backbones", "datasets": "Data sets"}


def reference_pages() -> dict[str, str]:
    """Markdown by the name of the page."""
    pages = {"command": _command(), "config": _config(), "recipes": _recipes(), "python": python_page()}
    return pages | {kind: _components(kind) for kind in KINDS}


def _command() -> str:
    for module in VERBS.values():
        import_module(f"episodica.cli.{module}")
    text = app.generate_docs(output_format="markdown")
    verbs = text[text.index("\n## episodica ") :].replace("```console\n", "```sh\n")
    verbs = re.sub(r"^episodica (.+?) \1 ", r"episodica \1 ", verbs, flags=re.MULTILINE)  # the verb, not twice
    about = "What `episodica VERB --help` says. Settings such as `--method.p` are in the [config](config.md) and with "
    return f"# Command line\n\n{about}their [methods](methods.md).\n{verbs}"


def _config() -> str:
    lines = [
        "# Config of every run",
        "Each is a key of a recipe, an option of the command (`--train.epochs 20`) and a key in Python "
        '(`{"train.epochs": 20}`). Settings of a [method](methods.md), a [learner](learners.md), a '
        "[backbone](backbones.md) or a [data set](datasets.md) are with it.",
    ]
    for name, section in sections():
        lines += [f"## {name}", *_table(section, f"{name}.")]
    return "\n\n".join([*lines, "## Of the run itself", *_table(RunConfig, "")]) + "\n"


def _components(heading: str) -> str:
    kind, section = KINDS[heading]
    lines = [f"# {TITLES[heading]}", f"Chosen by `--{section}.name NAME`."]
    for name, component in components(kind).items():
        lines += [f"## {name}", " ".join((component.__doc__ or "").split()), *_page_of(heading, name)]
        lines += _table(settings_of(component), f"{section}.") or ["It has no settings."]
    return "\n\n".join(lines) + "\n"


def _page_of(heading: str, name: str) -> Iterator[str]:
    if (ROOT / "docs" / heading / f"{name}.md").exists():
        yield f"[More about {name}](../{heading}/{name}.md)"


def _recipes() -> str:
    lines = ["# Recipes", "`episodica run NAME`; what each is for: [recipes and sweeps](../recipes.md)."]
    for name, recipe in packaged_recipes().items():
        runs = len(plan(recipe, {}, [], None, None))
        text = (files("episodica") / "recipes" / f"{name}.yaml").read_text()
        lines += [f"## {name}", f"{recipe.about} ({runs} {'run' if runs == 1 else 'runs'})", f"```yaml\n{text}```"]
    return "\n\n".join(lines) + "\n"


def _table(model: type[BaseModel], prefix: str) -> list[str]:
    """One table, or none where there is nothing to set."""
    rows = [_row(setting) for setting in settings_in(model, prefix)]
    return ["\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])] if rows else []


def _row(setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default != "-" else ""
    choices = f" ({', '.join(f'`{choice}`' for choice in setting.choices)})" if setting.choices else ""
    cells = (f"`{setting.path}`", default, setting.meaning + choices)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
