"""Shell completion: what is offered, and that the scripts offer it in the shells that there are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.conftest import SCRIPT, Command
from episodica.cli import VERBS
from episodica.cli.candidates import candidates


def offered(line: str) -> list[str]:
    return candidates(line.split(" "), VERBS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("le", ["learn"]),
        ("run quick", ["quickstart"]),
        ("run table3 --method.na", ["--method.name"]),
        ("run table3 --method.name er", ["erd"]),
        ("run --memory.select r", ["random", "rb"]),
        ("run --on ", ["local", "ray"]),
        ("run --log tens", ["tensorboard"]),
        ("run quickstart --dry", ["--dry-run"]),
        ("run --only method.na", ["method.name="]),
        ("run --train.bn ", ["joint", "released", "split"]),
        ("run --augment.flip t", ["true"]),
        ("tune cifar100_4 --over train.l", ["train.log_every=", "train.lr="]),
        ("list meth", ["methods"]),
        ("bench --clock ", ["cpu", "wall"]),
        ("data ch", ["check"]),
        ("completion f", ["fish"]),
        ("run my_recipe.ya", []),
        ("run --train.lr ", []),
        ("nothing x", []),
    ],
)
def test_what_is_offered(line: str, expected: list[str]) -> None:
    assert offered(line) == expected


def test_every_verb_and_every_option_of_it_is_offered() -> None:
    assert offered("") == sorted(VERBS)
    for verb in VERBS:
        assert "--help" not in candidates([verb, ""], VERBS)
        assert all(name.startswith("--") for name in candidates([verb, "--"], VERBS))
    assert {"--seeds", "--orders", "--train.lr", "--method.p"} <= set(offered("run --"))


def test_models_are_those_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_by_a_shell = ("b$(touch x)", "b`id`", "b;id", "b\nc", "b c", "b'", "~b", "-b")
    for name in ("birds", "bees", "other", *run_by_a_shell):
        (tmp_path / name).mkdir()
    for name in ("birds", "bees", *run_by_a_shell):
        (tmp_path / name / "model.json").write_text("{}")
    assert offered("classify b") == ["bees", "birds"]
    assert offered("classify birds ") == [], "then come files"
    assert offered("embed b") == ["bees", "birds"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one(command: Command, shell: str, tmp_path: Path) -> None:
    said = command("completion", shell)
    assert said.code == 0
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(said.out)
        subprocess.run([shell, "-n", str(script)], check=True)


def test_bash_completes() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    ask = (
        'eval "$(episodica completion bash)"; COMP_WORDS=(episodica run --method.name e); COMP_CWORD=3; '
        '_episodica; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "-c", ask], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["eiml", "erd"]


def test_fish_completes() -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("there is no fish")
    ask = 'episodica completion fish | source; complete -C "episodica run --method.name e"'
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [fish, "-c", ask], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["eiml", "erd"]
