"""The import graph of the packages, read from the source: imports inside functions count as well."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "episodica"


def package_imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """Package or top-level module -> those that it imports. `__init__`, the public API, imports but is not imported:
    lazily, so its stub says what."""
    graph: dict[str, set[str]] = {}
    for path in (*source.rglob("*.py"), *source.glob("*.pyi")):
        package = path.relative_to(source).parts[0].removesuffix(path.suffix)
        targets = {_package(source, module) for module in _imported_modules(path)}
        graph.setdefault(package, set()).update(targets - {package})
    return graph


def _imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively: name the whole module"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "episodica")


def _package(source: Path, name: str) -> str:
    """`episodica.data.store.ImageStore` -> `data`; what is no package nor module comes from `__init__`."""
    place = source.joinpath(*name.split(".")[1:2])
    return place.name if place != source and (place.is_dir() or place.with_suffix(".py").exists()) else "__init__"
