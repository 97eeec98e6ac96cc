"""What `episodica` offers: all that the contracts mention, the components, a few functions, and nothing else."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import episodica
from episodica.registry import Component, components

CONTRACTS = ("Method", "Step", "Learner", "Backbone", "Dataset", "FileDataset")

FOR_USERS = {
    "FewShotClassifier",
    "InputError",
    "OnRay",
    "Results",
    "RunConfig",
    "SideBySide",
    "TaskStream",
    "load_experiment",
    "load_learner",
    "new_learner",
    "plan",
    "run",
}
FOR_AUTHORS = {
    "Access",
    "DropBlock",
    "Dropout",
    "Generators",
    "Memory",
    "OnProgress",
    "Pool",
    "RandomLayer",
    "Source",
    "batch_steps",
    "check_share",
    "cross_entropy",
    "cross_task",
    "current_episodes",
    "draw_balanced_batch",
    "draw_batch",
    "draw_episodes",
    "exemplars_only",
    "generator",
    "kl",
    "lending",
    "load_or_build",
    "meta_term",
    "require_vectors",
    "squared_error",
}
NOT_FOR_AUTHORS = {"Component", "Located"}  # what the contracts inherit or keep to themselves


def test_it_offers_what_the_contracts_mention_components_and_a_few_more() -> None:
    mentioned = set().union(*(_ours_in(getattr(episodica, name)) for name in CONTRACTS)) - NOT_FOR_AUTHORS
    components = {name for name in episodica.__all__ if _is_component(getattr(episodica, name))}
    assert set(episodica.__all__) == mentioned | components | FOR_USERS | FOR_AUTHORS


def test_every_method_can_be_inherited_from() -> None:
    methods = {
        method.__name__ for method in components("method").values() if method.__module__.startswith("episodica.")
    }
    assert methods <= set(episodica.__all__)


def test_every_name_is_where_it_is_said_to_be() -> None:
    for module, names in episodica._NAMES.items():
        for name in names:
            value = getattr(episodica, name)
            assert value is getattr(import_module(f"episodica.{module}"), name)
    assert set(dir(episodica)) == {*episodica.__all__, "__version__"}


def test_type_checkers_are_told_the_same() -> None:
    stub = ast.parse((Path(episodica.__file__).with_suffix(".pyi")).read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    typed = {(node.module, alias.name) for node in imports for alias in node.names}
    (listed,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert typed == {(f"episodica.{module}", name) for module, names in episodica._NAMES.items() for name in names}
    assert set(listed) == set(episodica.__all__)


def test_importing_it_loads_no_torch() -> None:
    program = "import sys, episodica; print(episodica.__version__); sys.exit('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == episodica.__version__


def test_the_order_of_imports_does_not_matter() -> None:
    """Contracts and components refer to each other: whichever comes first must load."""
    modules = ["methods.access", "methods.method", "config.sections", "data.dataset", "models.conv4"]
    program = f"""
import os, sys, torch, pydantic
from importlib import import_module
for module in {modules}:
    child = os.fork()
    if not child:
        import_module(f"episodica.{{module}}")
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(module)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def _is_component(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Component)


def _ours_in(contract: type) -> set[str]:
    """The classes of the project in the annotations of fields and public methods."""
    hints = list(get_type_hints(contract).values())
    for name, member in vars(contract).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            hints += get_type_hints(member).values()
    return {part.__name__ for hint in hints for part in _parts(hint) if part.__module__.startswith("episodica.")}


def _parts(hint: Any) -> set[type]:
    found = {hint} if isinstance(hint, type) else set()
    return found.union(*(_parts(part) for part in get_args(hint)))
