from pathlib import Path

import pytest

from episodica import InputError
from episodica.classifier.incoming.read import read_classes


def labels(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "labels.csv").write_text(text, encoding=encoding)
    return folder / "labels.csv"


def test_a_line_for_each_image(write, tmp_path):
    for i, name in enumerate(("in/a.png", "in/deep/b.png", "in/c, d.png")):
        write(name, i)
    text = 'who,path,label\r\nme,a.png,robin\r\nme,deep/b.png, Zaunkönig \r\nyou,"c, d.png",robin\r\n,gone.png,owl\r\n'
    found = read_classes(labels(tmp_path / "in", text, "utf-8-sig"))
    assert {name: [path.name for path in paths] for name, paths in found.classes.items()} == {  # type: ignore[union-attr]
        "robin": ["a.png", "c, d.png"],
        "Zaunkönig": ["b.png"],
    }
    assert [one.reason for one in found.left_out] == ["there is no such file (line 5 of labels.csv)"]


def test_no_path_leads_out_of_the_folder(write, tmp_path):
    secret = write("secret.png", 0)
    write("in/a.png", 1)
    (tmp_path / "in" / "link.png").symlink_to(secret)
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    (tmp_path / "in" / "also.png").symlink_to(tmp_path / "in" / "a.png")
    for path in ("../secret.png", str(secret), "a/../../secret.png", "..\\secret.png", "link.png", "up/secret.png", ""):
        with pytest.raises(InputError, match=r"line 2: .*(inside the folder|leads out of the folder)"):
            read_classes(labels(tmp_path / "in", f'path,label\n"{path}",robin\n'))
    assert list(read_classes(labels(tmp_path / "in", "path,label\nalso.png,robin\n")).classes) == ["robin"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'has the columns ""'),
        ("file,class\na.png,robin\n", 'has the columns "file, class": its first line must name path and label'),
        ("path,label\na.png,\n", "line 2: a label has 1 to 255 characters; this has 0"),
        ("path,label\na.png\n", "line 2: a label has 1 to 255 characters; this has 0"),
        (f"path,label\na.png,{'x' * 300}\n", "this has 300"),
        ("path,label\nb.png,robin\n", "names no image that is there"),
        ('path,label\n"a.png,robin\n', "is no CSV in UTF-8"),
        (f"path,label\n{'a' * 200_000},robin\n", "is no CSV in UTF-8: field larger"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(write, tmp_path, text, message):
    write("in/a.png", 0)
    with pytest.raises(InputError, match=message):
        read_classes(labels(tmp_path / "in", text))


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "labels.csv").write_bytes(b"path,label\n\xff\xfe,robin\n")
    with pytest.raises(InputError, match="is no CSV in UTF-8"):
        read_classes(tmp_path / "labels.csv")


def test_another_file_is_no_folder(write):
    with pytest.raises(InputError, match=r"is not a folder: give one .* or a CSV file"):
        read_classes(write("a.png", 0))
