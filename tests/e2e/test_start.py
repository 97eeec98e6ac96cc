"""What needs no torch does not load it: help, lists, plans, and every error in the options."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from episodica import __version__, cli

NO_CUDA = {
    "run quickstart --device cuda:7": 2,
    "run quickstart --precision bf16": 2,
    "learn model images --device cuda": 2,
}
COMMANDS = {  # and the exit code of each
    "--help": 0,
    "--version": 0,
    "list": 0,
    "list methods": 0,
    "data": 0,
    "run --help": 0,
    "learn --help": 0,
    "bench --help": 0,
    "run quickstart --dry-run": 0,
    "run table3 --dry-run --json": 0,
    "run table3 --only method.name=erd,ft --seeds 2 --dry-run": 0,
    "lern": 2,
    "list metods": 2,
    "run quickstart --method.q 1": 2,
    "run quickstart --train.lr -1": 2,
    "run quickstart --augment.size 8 --learner.name relationnet": 2,
    "run no_such_recipe.yaml": 2,
    "run quickstart --cpus 2": 2,
    "run quickstart --on ray --cpus 0": 2,
    "learn": 2,
    "learn model images extra": 2,
    "learn model images --keep 0": 2,
    "learn model no_such_folder": 2,
    "learn model images --train.lrr 1": 2,
    "learn model images --method.lamda_m 1": 2,
    "learn model images --backbone.name conv5": 2,
    "learn model images --shape.way many": 2,
    "learn model images --stream.tasks 2": 2,
    "learn model images --threads 0": 2,
    "classify model --json --csv image.png": 2,
    "classify model --out answers.txt image.png": 2,
    "classify model --out answers.csv -": 2,
    "classify model --address auto image.png": 2,
    "classify model --on ray --cpus 0 image.png": 2,
    "embed model image.png": 2,
    "embed model --out vectors.csv image.png": 2,
    "embed model --out vectors.npy": 2,
    "embed model --out vectors.npy -": 2,
    "embed model --out vectors.npy --disk own image.png": 2,
    "sort model inbox --to sorted --watch --on ray": 2,
    "remember model --support no_such_folder": 2,
    "serve model --port many": 2,
    "share model name": 2,
    "share --help": 0,
    "completion bash": 0,
    "completion answer -- run --method.name e": 0,
    "tune --help": 0,
    "tune quickstart": 2,
    "tune quickstart --method.name erd --over method.q=0:1": 2,
    "tune quickstart --method.name erd --over method.p=0:1 --stream.validation_classes 0": 2,
    "bench nothing": 2,
    "bench --clock cpu": 2,
    "watch no_such_folder": 2,
    "export model": 2,
}

ALL_IN_ONE_PROCESS = """
import json, sys, traceback
from importlib.abc import MetaPathFinder

class NoTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise AssertionError("torch is imported: take it from episodica.lazy_torch, or import it where it is used")

sys.meta_path.insert(0, NoTorch())
codes = {}
for command in json.loads(sys.argv[1]):
    sys.argv = ["episodica", *command.split()]
    try:
        from episodica.cli import main
        main()
    except SystemExit as end:
        codes[command] = end.code
    except BaseException:
        codes[command] = traceback.format_exc()
sys.stdout.write("\\n" + json.dumps(codes))
"""


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int | str]:
    folder: Path = tmp_path_factory.mktemp("start")
    command = [sys.executable, "-c", ALL_IN_ONE_PROCESS, json.dumps([*COMMANDS, *NO_CUDA])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == [], "none of these commands writes anything"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("command", "code"), COMMANDS.items())
def test_without_torch(codes: dict[str, int | str], command: str, code: int) -> None:
    assert codes[command] == code, codes[command]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize(("command", "code"), NO_CUDA.items())
def test_without_torch_and_without_cuda(codes: dict[str, int | str], command: str, code: int) -> None:
    assert codes[command] == code, codes[command]


@pytest.mark.filterwarnings("ignore:Cyclopts application invoked:UserWarning")
def test_the_module_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["episodica", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("episodica", run_name="__main__")
    assert capsys.readouterr().out.strip() == __version__


def test_every_module_that_adds_a_verb_is_known() -> None:
    modules = Path(cli.__path__[0]).glob("*.py")
    assert {module.stem for module in modules if "\n@app.command" in module.read_text()} | {"data"} == {
        *cli.VERBS.values()
    }
