"""The page of the public names of `episodica`, read from their source: nothing is imported for it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from addresses import ROOT

PACKAGE = ROOT / "src" / "episodica"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_page() -> str:
    lines = ["# Python", "All of it is imported from `episodica`. How it is used: [in Python](../python.md)."]
    for heading, names in _groups():
        lines.append(f"## {heading[0].upper()}{heading[1:]}")
        for module, name in names:
            lines += _name(PACKAGE / f"{module.replace('.', '/')}", name)
    return "\n\n".join(lines) + "\n"


def _groups() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The comments in the table of public names are its headings."""
    source = (PACKAGE / "__init__.py").read_text()
    table = source[source.index("_NAMES = {") : source.index("_HOMES")]
    for part in re.split(r"^    # ", table, flags=re.MULTILINE)[1:]:
        heading, rest = part.split("\n", 1)
        found = re.findall(r'^    "([\w.]+)": \(([^)]*)\)', rest, flags=re.MULTILINE)
        yield heading, [(module, name) for module, names in found for name in re.findall(r'"(\w+)"', names)]


def _name(module: Path, name: str) -> Iterator[str]:
    path = module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__init__.py"
    source = path.read_text()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield from _class(node, source.splitlines())
            return
        if isinstance(node, Function) and node.name == name:
            yield from _function(node, source.splitlines(), f"### {name}")
            return
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            yield from (f"### {name}", f"```python\n{ast.unparse(node)}\n```")
            return
        if isinstance(node, ast.ImportFrom) and node.module and name in [alias.name for alias in node.names]:
            yield from _name(PACKAGE / node.module.removeprefix("episodica.").replace(".", "/"), name)
            return
    raise AssertionError(f"{path} defines no {name}")


def _class(node: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    fields = [_line(lines, item) for item in node.body if isinstance(item, ast.AnnAssign) and _public(item)]
    head = f"class {node.name}" + (f"({bases})" if bases else "") + ":"
    yield f"### {node.name}"
    yield "```python\n" + "\n    ".join([head, *(fields or ["..."])]) + "\n```"
    yield from _doc(node)
    for item in node.body:
        if isinstance(item, Function) and (item.name == "__init__" or not item.name.startswith("_")):
            yield from _function(item, lines, f"**{node.name}.{item.name}**" if item.name != "__init__" else None)


def _line(lines: list[str], node: ast.AnnAssign) -> str:
    """With the comment behind it, which says what it is."""
    assert node.end_lineno is not None
    return "\n".join(dedent(line) for line in lines[node.lineno - 1 : node.end_lineno])


def _public(node: ast.AnnAssign) -> bool:
    return isinstance(node.target, ast.Name) and not node.target.id.startswith("_")


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _function(node: Function, lines: list[str], title: str | None) -> Iterator[str]:
    """As it is written, decorators included, up to its body."""
    first = min(part.lineno for part in (node, *node.decorator_list)) - 1
    written = dedent("\n".join(lines[first : max(node.body[0].lineno - 1, node.lineno)]))
    if title:
        yield title
    yield f"```python\n{re.sub(r'  # noqa.*', '', written)}\n```"
    yield from _doc(node)


def _doc(node: ast.ClassDef | Function) -> Iterator[str]:
    text = ast.get_docstring(node)
    if text:
        yield text
