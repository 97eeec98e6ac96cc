"""Honest archives arrive whole; every attack and every damage is refused by name and leaves nothing behind."""

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.data.archive import unpack
from episodica.errors import InputError

FILES = {"a/1.png": b"one", "a/2.png": b"", "b/ünï 图 👩‍👧.png": bytes(range(256)) * 5000, "readme.txt": b"hello"}
PLENTY = 100_000_000


def tarred(path: Path, *members: tuple[tarfile.TarInfo | str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # pyright: ignore[reportCallIssue, reportArgumentType]
        for member, data in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as package:
        for member, data in members:
            package.writestr(member, data)
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refusal(archive: Path, dest: Path, max_bytes: int = PLENTY, max_files: int = 1000) -> str:
    with pytest.raises(InputError) as caught:
        unpack(archive, dest, max_bytes=max_bytes, max_files=max_files)
    assert list(dest.iterdir()) == []
    assert [path for path in dest.parent.iterdir() if path not in (archive, dest)] == []
    text = str(caught.value)
    assert text.startswith(f"{archive}: ")
    assert "\n" not in text
    return text.removeprefix(f"{archive}: ")


MAKERS: dict[str, Callable[[Path], Path]] = {
    "x.tar": lambda folder: tarred(folder / "x.tar", *FILES.items()),
    "x.tar.gz": lambda folder: tarred(folder / "x.tar.gz", *FILES.items(), mode="w:gz"),
    "x.tgz": lambda folder: tarred(folder / "x.tgz", *FILES.items(), mode="w:gz"),
    "x.zip": lambda folder: zipped(folder / "x.zip", *FILES.items()),
    "stored.zip": lambda folder: zipped(folder / "stored.zip", *FILES.items(), method=zipfile.ZIP_STORED),
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


# Honest


@every_kind
def test_files_arrive_as_they_were(make: Callable[[Path], Path], tmp_path: Path) -> None:
    total = sum(map(len, FILES.values()))
    unpack(make(tmp_path), tmp_path / "deep" / "dest", max_bytes=total, max_files=len(FILES))
    assert tree(tmp_path / "deep" / "dest") == FILES


@pytest.mark.parametrize("layout", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_folder_packed_by_tar(layout: int, tmp_path: Path) -> None:
    long = "n" * 90 + "/" + "m" * 90 + ".png"
    for name, data in {**FILES, long: b"long"}.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(data)
    (tmp_path / "source" / "empty").mkdir()
    with tarfile.open(tmp_path / "x.tar", "w", format=layout) as tar:
        tar.add(tmp_path / "source", ".")
    unpack(tmp_path / "x.tar", tmp_path / "dest", max_bytes=PLENTY)
    assert tree(tmp_path / "dest") == {**FILES, long: b"long"}
    assert (tmp_path / "dest" / "empty").is_dir()


def test_a_zip_with_folders(tmp_path: Path) -> None:
    unpack(zipped(tmp_path / "x.zip", ("a/", b""), ("a/b/", b""), ("a/1.png", b"1")), tmp_path / "d", max_bytes=1)
    assert tree(tmp_path / "d") == {"a/1.png": b"1"}
    assert (tmp_path / "d" / "a" / "b").is_dir()


def test_the_content_decides_not_the_suffix(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", ("a.png", b"1"), method=zipfile.ZIP_STORED).read_bytes()
    unpack(tarred(tmp_path / "download", ("inner.zip", inner)), tmp_path / "d", max_bytes=PLENTY)
    assert tree(tmp_path / "d") == {"inner.zip": inner}


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_modes_and_owners_are_not_taken_over(kind: str, tmp_path: Path) -> None:
    rogue, entry = tarfile.TarInfo("run.sh"), zipfile.ZipInfo("run.sh")
    rogue.mode, rogue.uid, entry.external_attr = 0o6777, 12345, (stat.S_IFREG | 0o6777) << 16
    archive = tmp_path / "x"
    tarred(archive, (rogue, b"x")) if kind == "tar" else zipped(archive, (entry, b"x"))
    unpack(archive, tmp_path / "d", max_bytes=1)
    (tmp_path / "plain").touch()
    ours, plain = (tmp_path / "d" / "run.sh").stat(), (tmp_path / "plain").stat()
    assert (ours.st_mode, ours.st_uid) == (plain.st_mode, plain.st_uid)


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match=r"d: is not empty; unpack x\.tar into a new folder"):
        unpack(MAKERS["x.tar"](tmp_path), tmp_path / "d", max_bytes=PLENTY)
    assert tree(tmp_path / "d") == {"mine.txt": b"precious"}


# Names

BAD_NAMES = [
    "/etc/passwd",
    "//host/share/x",
    "../x",
    "a/../../x",
    "a/..",
    "C:/x",
    "c:x",
    "..\\x",
    "a\\b.png",
    "\\\\host\\x",
    "a/" * 40 + "x",
    "n" * 300,
]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_names_that_lead_elsewhere(kind: str, name: str, tmp_path: Path) -> None:
    members = ("good.png", b"1"), (name, b"2")
    archive = (tarred if kind == "tar" else zipped)(tmp_path / "x", *members)
    assert refusal(archive, tmp_path / "d").startswith(f"{name!r} ")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_name_without_end_does_not_fill_the_screen(kind: str, tmp_path: Path) -> None:
    archive = (tarred if kind == "tar" else zipped)(tmp_path / "x", ("n" * 20_000, b"1"))
    assert len(refusal(archive, tmp_path / "d")) < 1_000


def test_a_nul_in_a_name(tmp_path: Path) -> None:
    data = zipped(tmp_path / "x.zip", ("a.pngZ.exe", b"1")).read_bytes().replace(b"a.pngZ.exe", b"a.png\0.exe")
    (tmp_path / "x.zip").write_bytes(data)
    assert refusal(tmp_path / "x.zip", tmp_path / "d").startswith(r"'a.png\x00.exe' is not a plain relative name")
    info = tarfile.TarInfo("a.png")
    info.pax_headers = {"path": "a.png\0.exe"}
    (tmp_path / "x.zip").unlink()
    assert "'a.png" in refusal(tarred(tmp_path / "x.tar", (info, b"1")), tmp_path / "d")


@pytest.mark.parametrize(
    "names", [("a", "a"), ("a", "a/b"), ("a", "a/b/c"), ("a/b", "a"), ("a", "./a"), ("a", "a//"), ("a", ".")]
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_collide(kind: str, names: tuple[str, str], tmp_path: Path) -> None:
    archive = (tarred if kind == "tar" else zipped)(tmp_path / "x", *((name, b"1") for name in names))
    assert "cannot be unpacked ([Errno" in refusal(archive, tmp_path / "d")


# Other things than files


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"?"]
)
def test_special_members_of_a_tar(kind: bytes, tmp_path: Path) -> None:
    archive = tarred(tmp_path / "x.tar", ("a", b"1"), (special("odd", kind, "a"), b""), ("odd/b", b"2"))
    assert refusal(archive, tmp_path / "d").startswith("'odd' ")


def test_a_link_out_and_a_file_through_it(tmp_path: Path) -> None:
    link = special("out", tarfile.SYMTYPE, "..")
    assert refusal(tarred(tmp_path / "x.tar", (link, b""), ("out/x", b"2")), tmp_path / "d").startswith(
        "'out' is a link"
    )


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_special_members_of_a_zip(kind: int, tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("odd")
    entry.external_attr = (kind | 0o777) << 16
    assert refusal(zipped(tmp_path / "x.zip", (entry, b"/etc")), tmp_path / "d").startswith("'odd' is a link")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_uncommon_compression(method: int, tmp_path: Path) -> None:
    archive = zipped(tmp_path / "x.zip", ("a", b"1"), method=method)
    assert "packed in an uncommon way" in refusal(archive, tmp_path / "d")


def test_an_encrypted_zip(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "x.zip", ("a.png", b"secret")).read_bytes())
    for flags in (6, data.index(b"PK\1\2") + 8):
        data[flags] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    assert refusal(tmp_path / "x.zip", tmp_path / "d").startswith("'a.png' is a link, a device, encrypted or")


# Too much


@every_kind
def test_one_byte_or_one_file_too_many(make: Callable[[Path], Path], tmp_path: Path) -> None:
    total = sum(map(len, FILES.values()))
    text = refusal(make(tmp_path), tmp_path / "d", max_bytes=total - 1)
    assert text == f"'readme.txt' goes beyond the {total - 1:,} bytes allowed in total"
    text = refusal(make(tmp_path), tmp_path / "d", max_files=len(FILES) - 1)
    assert text == "'readme.txt' is one more than the 3 files and folders allowed"


def test_a_gzip_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    info = tarfile.TarInfo("zeros.png")
    info.size = 10**9
    bomb = tmp_path / "bomb.tar.gz"
    bomb.write_bytes(gzip.compress(info.tobuf()) + gzip.compress(bytes(20_000_000)) * 50)
    assert bomb.stat().st_size < 1_100_000
    start = time.perf_counter()
    text = refusal(bomb, tmp_path / "d", max_bytes=1_000_000)
    assert text == "'zeros.png' goes beyond the 1,000,000 bytes allowed in total"
    assert time.perf_counter() - start < 1


def test_a_zip_that_lies_about_its_size(tmp_path: Path) -> None:
    data = zipped(tmp_path / "x.zip", ("a", bytes(5_000_000))).read_bytes()
    (tmp_path / "x.zip").write_bytes(data.replace(struct.pack("<I", 5_000_000), struct.pack("<I", 5)))
    assert refusal(tmp_path / "x.zip", tmp_path / "d", max_bytes=10).startswith("'a' ")


def test_many_small_files_add_up(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "x.zip", *((f"{i}", bytes(1000)) for i in range(50)))
    assert refusal(archive, tmp_path / "d", max_bytes=10_500).startswith("'10' goes beyond the 10,500 bytes")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE])
@pytest.mark.parametrize("size", [10**9, 40_000, -512])
def test_a_tar_header_that_wants_all_memory(kind: bytes, size: int, tmp_path: Path) -> None:
    header = special("././@LongLink", kind)
    header.size = size
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1_000_000)))
    assert refusal(tmp_path / "x.tar.gz", tmp_path / "d").endswith("has a header of an impossible length")


def test_a_file_of_negative_size(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    info.size = -512
    (tmp_path / "x.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    assert refusal(tmp_path / "x.tar", tmp_path / "d")


def test_a_sparse_file(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a")
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(10**15), "GNU.sparse.name": "a"}
    assert refusal(tarred(tmp_path / "x.tar", (info, b"1")), tmp_path / "d").startswith(
        "'a' is a link, a device, encrypted or"
    )


def test_zeros_without_end_after_the_end(tmp_path: Path) -> None:
    end = gzip.compress(bytes(3_000_000))
    tarred(tmp_path / "x.tar.gz", ("a", b"1"), mode="w:gz")
    with (tmp_path / "x.tar.gz").open("ab") as archive:
        archive.write(end)
    assert refusal(tmp_path / "x.tar.gz", tmp_path / "d") == "what follows 'a' is not the end of an archive"


# Damage


@every_kind
@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.9])
def test_truncated(make: Callable[[Path], Path], kept: float, tmp_path: Path) -> None:
    archive = make(tmp_path)
    os.truncate(archive, int(kept * archive.stat().st_size))
    refusal(archive, tmp_path / "d")


def test_a_tar_cut_between_two_members(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "x.tar", ("a", b"1"), ("b", b"2"))
    os.truncate(archive, 1024)
    assert refusal(archive, tmp_path / "d") == "what follows 'a' is not the end of an archive"


def test_a_broken_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "x.tar", ("a", b"1"), ("b", b"2"))
    data = bytearray(archive.read_bytes())
    data[1024 + 120] ^= 1
    archive.write_bytes(data)
    assert refusal(archive, tmp_path / "d") == "what follows 'a' is not the end of an archive"


@pytest.mark.parametrize("name", ["x.tar.gz", "x.zip", "stored.zip"])
def test_a_wrong_checksum(name: str, tmp_path: Path) -> None:
    archive = MAKERS[name](tmp_path)
    data = bytearray(archive.read_bytes())
    where = {"x.tar.gz": -6, "x.zip": data.find(b"PK\1\2") + 16, "stored.zip": data.find(bytes(range(256)))}
    data[where[name]] ^= 1
    archive.write_bytes(data)
    assert "CRC" in refusal(archive, tmp_path / "d")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no archive",
        b"x" * 5000,
        b"PK\3\4",
        b"\x1f\x8b",
        gzip.compress(b"no tar", mtime=0),
        bz2.compress(b"x"),
        lzma.compress(b"x"),
    ],
)
def test_no_archive_at_all(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(data)
    assert refusal(tmp_path / "x.tar", tmp_path / "d").startswith(
        "as a .tar, .tar.gz, .tgz or .zip it cannot be unpacked ("
    )


def test_no_file_at_all(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tar")
    for path in (tmp_path / "gone.tar", tmp_path, tmp_path / "pipe.tar"):
        with pytest.raises(InputError, match=r": is not a file; name a \.tar"):
            unpack(path, tmp_path / "d", max_bytes=1)


def test_a_folder_too_full_of_folders(tmp_path: Path) -> None:
    members = [(special("a/" * depth, tarfile.DIRTYPE), b"") for depth in range(1, 1200)]
    assert "at most 32 parts" in refusal(tarred(tmp_path / "x.tar", *members), tmp_path / "d", max_files=10_000)


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = MAKERS["x.zip"](tmp_path)

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipExtFile, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unpack(archive, tmp_path / "d", max_bytes=PLENTY)
    assert list((tmp_path / "d").iterdir()) == []


with tempfile.TemporaryDirectory() as scratch:
    SMALL = {"a/1": b"one" * 300, "a/2": b"two", "b/3": b""}
    VALID = {
        "tar": tarred(Path(scratch, "tar"), *SMALL.items()).read_bytes(),
        "gz": tarred(Path(scratch, "gz"), *SMALL.items(), mode="w:gz").read_bytes(),
        "zip": zipped(Path(scratch, "zip"), *SMALL.items()).read_bytes(),
    }


@given(
    st.sampled_from(sorted(VALID)),
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1),
    st.floats(0, 1),
)
def test_damage_is_refused_or_harmless(kind: str, flips: list[tuple[float, int]], kept: float) -> None:
    data = bytearray(VALID[kind])
    for where, bits in flips:
        data[int(where * (len(data) - 1))] ^= bits
    for damaged in (data, data[: int(kept * len(data))], VALID[kind][: int(kept * len(data))]):
        with tempfile.TemporaryDirectory() as folder:
            archive, dest = Path(folder, "x"), Path(folder, "d")
            archive.write_bytes(damaged)
            try:
                unpack(archive, dest, max_bytes=10_000)
            except InputError:
                assert list(dest.iterdir()) == []
            assert {path.name for path in Path(folder).iterdir()} == {"x", "d"}


def test_the_directory_of_a_zip_is_not_read_beyond_what_so_many_files_need(tmp_path: Path) -> None:
    """An object is made of every member before the first is looked at: 47 bytes become 300."""
    member = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = member * 50_000
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 50_000, 50_000, len(directory), 34, 0)
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"PK\3\4" + bytes(30) + directory + end)
    with pytest.raises(InputError, match="has a directory of"):
        unpack(archive, tmp_path / "out", max_bytes=PLENTY, max_files=100)
