"""Compiling on first use: found again, never half written, and clear words where there is no compiler."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import pytest

from episodica.engine.fused import build
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.fused.build import CannotBuild, kernels, library
from episodica.engine.fused.first_block import FirstBlock
from episodica.engine.fused.later_block import LaterBlock
from episodica.errors import InputError
from episodica.files.digest import digest_of
from episodica.learners.protonet import ProtoNet
from episodica.models.conv4 import Conv4
from episodica.rng import seeded
from unit.files.hostile import plant

COMPILING_ONCE = """#!/bin/sh
case "$*" in *-dM*) exec c++ "$@";; esac
for out; do :; done
kept="$0.$(basename "$out")"
[ -e "$kept" ] || { c++ "$@" && mv "$out" "$kept"; } && cp "$kept" "$out"
"""


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> Path:
    """The usual one, which compiles a file when it is first asked and then gives a copy: each build takes seconds."""
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    return script(tmp_path_factory.mktemp("compiler"), COMPILING_ONCE)


def script(folder: Path, text: str) -> Path:
    path = folder / "compiler"
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def fresh(compiler, tmp_path, monkeypatch):
    """An empty cache, and nothing remembered from before or for later."""
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path))
    kernels.cache_clear()
    yield
    kernels.cache_clear()


@pytest.fixture(scope="module")
def built_once(compiler, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(compiler))
        patch.setenv("EPISODICA_CACHE", str(folder))
        kernels.cache_clear()
        library()
    (path,) = built(folder)
    return path


@pytest.fixture
def found(built_once, tmp_path) -> Path:
    """The library in the cache, as an earlier start left it."""
    path = tmp_path / "kernels" / built_once.name
    path.parent.mkdir()
    path.write_bytes(built_once.read_bytes())
    path.chmod(0o700)
    return path


@pytest.fixture
def conv4_learner() -> ProtoNet:
    with seeded("learner"):
        return ProtoNet(backbone=Conv4())


def built(folder: Path) -> list[Path]:
    return list((folder / "kernels").glob("*.so"))


def test_a_later_start_finds_what_an_earlier_one_has_built(found, tmp_path):
    before = found.stat().st_mtime_ns
    assert library().patch_moments
    assert built(tmp_path) == [found]
    assert found.stat().st_mtime_ns == before


def test_a_damaged_file_is_built_again(found):
    found.write_bytes(found.read_bytes()[:100])
    assert library().patch_moments


@pytest.mark.usefixtures("built_once")
def test_several_may_build_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "shared"))
    with ThreadPoolExecutor(2) as pool:
        libraries = [pool.submit(kernels.__wrapped__) for _ in range(2)]
    assert all(one.result().functions.patch_moments for one in libraries)
    assert len(built(tmp_path / "shared")) == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-compiler", "no C\\+\\+ compiler `no-such-compiler`: install"),
        ("false", "`false` failed"),
        ("'g++", "CXX = 'g\\+\\+ is no command"),
    ],
)
def test_without_a_working_compiler(command, said, monkeypatch, tmp_path, conv4_learner):
    monkeypatch.setenv("CXX", command)
    with pytest.raises(CannotBuild, match=said):
        library()
    received: list[str] = []
    assert accelerate(conv4_learner, "auto", received.append) == "torch"
    assert type(conv4_learner.backbone.blocks[0]) is not FirstBlock
    assert len(received) == 1
    with pytest.raises(InputError, match=f"kernels = fused: .*{said}"):
        accelerate(conv4_learner, "fused", received.append)
    assert not (tmp_path / "kernels").exists()


CRASHING = """#!/bin/sh
case "$*" in *-dM*) exec c++ "$@";; esac
for out; do :; done
echo '__attribute__((constructor)) void crash() { __builtin_trap(); }' | c++ -x c++ -shared -fPIC -o "$out" -
"""
COMPLAINING = """#!/bin/sh
case "$*" in *-dM*) exec c++ "$@";; esac
printf 'In file included from here:\\n\\377: error: no room\\n' >&2
exit 1
"""


@pytest.mark.usefixtures("built_once")
@pytest.mark.parametrize(
    ("text", "said"), [(CRASHING, "crashes here, by signal"), (COMPLAINING, "said: .*: error: no room")]
)
def test_a_compiler_that_does_harm_is_found_out_and_leaves_nothing(text, said, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(script(tmp_path, text)))
    with pytest.raises(CannotBuild, match=said):
        library()
    assert built(tmp_path) == []


HANGING = """#!/bin/sh
(sleep 60; echo alive) > {pipe} &
sleep 60
"""


def test_a_compiler_that_hangs_is_ended_with_what_it_has_started(tmp_path, monkeypatch):
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setenv("CXX", str(script(tmp_path, HANGING.format(pipe=pipe))))
    monkeypatch.setattr(build, "PATIENCE", 2)
    with pytest.raises(CannotBuild, match="timed out"):
        library()
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as said:
        assert said.read() == b""  # when none is left that could write


def test_a_compiler_that_writes_nothing(monkeypatch):
    monkeypatch.setenv("CXX", "true")
    with pytest.raises(CannotBuild, match="`true` wrote nothing"):
        library()


@pytest.mark.usefixtures("built_once")
def test_another_source_flag_command_or_processor_is_another_build(tmp_path, monkeypatch):
    source = tmp_path / "vectors.h"
    source.write_text(build.SOURCES[-1].read_text() + "// changed")
    keys = [build._key()]
    for change in (
        lambda patch: patch.setattr(build, "SOURCES", (*build.SOURCES[:-1], source)),
        lambda patch: patch.setattr(build, "FLAGS", (*build.FLAGS, "-g")),
        lambda patch: patch.setenv("CXX", "c++ -fno-math-errno"),
        lambda patch: patch.setattr(build, "FLAGS", tuple(f for f in build.FLAGS if not f.startswith("-march"))),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            keys.append(build._key())
    assert len(set(keys)) == len(keys)
    assert build._key() == keys[0]


@pytest.mark.usefixtures("built_once")
def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "file"))
    with pytest.raises(CannotBuild, match="cannot be written"):
        library()


@pytest.mark.usefixtures("found")
def test_the_blocks_are_replaced_and_the_state_stays(conv4_learner):
    for asked in ("auto", "fused"):
        learner, received = deepcopy(conv4_learner), []
        assert accelerate(learner, asked, received.append) == "fused"
        assert not received
        kinds = [type(block) for block in learner.backbone.blocks]
        assert kinds == [FirstBlock, LaterBlock, LaterBlock, LaterBlock]
        assert list(learner.state_dict()) == list(conv4_learner.state_dict())
        assert [name for name, _ in learner.named_modules()] == [name for name, _ in conv4_learner.named_modules()]


def test_nothing_is_built_where_it_is_not_asked_for_or_does_not_fit(conv4_learner, learner, tmp_path):
    received: list[str] = []
    assert accelerate(conv4_learner, "torch", received.append) == "torch"
    assert accelerate(learner, "auto", received.append) == "torch"
    with pytest.raises(InputError, match="which this backbone has not"):
        accelerate(learner, "fused", received.append)
    assert not received
    assert not list(tmp_path.iterdir())


PLANTED = '__attribute__((constructor)) void run() { FILE *f = fopen("%s", "w"); if (f) fclose(f); }'


@pytest.fixture
def planted(built_once, tmp_path) -> Path:
    """A library under every name that could be looked for, which tells when it is loaded."""
    code, path = tmp_path / "planted.c", tmp_path / "planted.so"
    code.write_text("#include <stdio.h>\n" + PLANTED % (tmp_path / "loaded"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, code], check=True)
    data, key = path.read_bytes(), build._key()
    kernels_folder = tmp_path / "kernels"
    kernels_folder.mkdir()
    for name in (f"{key}.so", built_once.name, f"{key}-{digest_of(data)}.so"):
        (kernels_folder / name).write_bytes(data)
        (kernels_folder / name).chmod(0o700)
    return kernels_folder


def of_another_user(folder: Path) -> None:
    for path in (folder, *folder.iterdir()):
        os.chown(path, 12345, 12345)


def files_of_another_user(folder: Path) -> None:
    for path in folder.iterdir():
        os.chown(path, 12345, 12345)


def written_by_others(folder: Path) -> None:
    folder.chmod(0o777)
    for path in folder.iterdir():
        path.chmod(0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another user takes root")
@pytest.mark.parametrize("share", [of_another_user, files_of_another_user, written_by_others])
def test_what_others_can_write_is_not_loaded(planted, tmp_path, share, conv4_learner):
    share(planted)
    notices: list[str] = []
    assert accelerate(conv4_learner, "auto", notices.append) == "fused"
    assert library().patch_moments
    assert not (tmp_path / "loaded").exists()
    if share is of_another_user:
        assert "were not used, but built anew: " in notices[0]
        assert "belongs to another user" in notices[0]
    else:
        assert not notices
        assert planted.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe"])
def test_links_in_the_cache_of_kernels_are_not_followed(found, victim, kind):
    plant(kind, found, victim)
    assert library().patch_moments
    assert not found.is_symlink()


@pytest.mark.parametrize("length", [100, 5000, -1])
def test_a_library_that_lost_its_end_is_built_again(found, length):
    """Mapped as it is, it would end the process by SIGBUS where it is touched."""
    whole = found.read_bytes()
    found.write_bytes(whole[:length])
    assert library().patch_moments
    assert found.read_bytes() == whole
