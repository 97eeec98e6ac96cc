"""A CSV file that says which image is of which class: `path,label`, one image a line, paths as seen from the file.

A path leads to a file in the folder of the CSV file or below it, whatever it is made of: what leads elsewhere, by `..`
or by a link, is refused together with the whole file.
"""

import csv
from io import StringIO
from pathlib import Path, PurePosixPath

from episodica.classifier.incoming.incoming import LeftOut
from episodica.classifier.incoming.layouts import Listed
from episodica.errors import InputError

PATH, LABEL = "path", "label"
MOST_BYTES = 2**26
LONGEST_LABEL = 255  # characters, as of a folder's name


def list_labelled(file: Path) -> Listed:
    root = file.parent.resolve()
    found = Listed()
    for line, name, label in _lines(file):
        if not label or len(label) > LONGEST_LABEL:
            raise InputError(f"{file}, line {line}: a label has 1 to {LONGEST_LABEL} characters; this has {len(label)}")
        path = file.parent / _inside(name, root, f"{file}, line {line}")
        if path.is_file():
            found.add(label, path)
        else:
            found.left_out.append(LeftOut(str(path), f"there is no such file (line {line} of {file.name})"))
    if not found.classes:
        raise InputError(f"{file} names no image that is there: its paths begin in the folder of the file")
    return found


def _lines(file: Path) -> list[tuple[int, str, str]]:
    """The number of each line, the path and the label."""
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise InputError(f"{file} has {size:,} bytes, and a file of labels may have {MOST_BYTES:,}: divide it")
    try:
        rows = csv.DictReader(StringIO(file.read_bytes().decode("utf-8-sig"), newline=""), strict=True)
        columns = rows.fieldnames or []
        if not {PATH, LABEL} <= set(columns):
            raise InputError(
                f'{file} has the columns "{", ".join(columns)[:200]}": its first line must name {PATH} and {LABEL}'
            )
        return [(rows.line_num, (row[PATH] or "").strip(), (row[LABEL] or "").strip()) for row in rows]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file} is no CSV in UTF-8: {error}") from None


def _inside(name: str, root: Path, line: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise InputError(f'{line}: "{name}" must be a path inside the folder of the file, without ..')
    if not (root / path).resolve().is_relative_to(root):
        raise InputError(f'{line}: "{name}" is a link that leads out of the folder of the file: put a copy there')
    return path
