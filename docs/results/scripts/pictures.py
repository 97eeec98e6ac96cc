"""Draw the curves of the results pages from the committed runs (`make results`).

python docs/results/scripts/pictures.py
"""

from committed import RESULTS, Group
from episodica.files.door import Folder
from episodica.report.comparison import Run as ReportedRun
from episodica.report.figures.canvas import save
from episodica.report.figures.curves import curves
from episodica.report.settings import by_setting, title

PLACE = RESULTS.parent / "images"
DRAWN = {"long": "cifar100_16_long", "quick": "cifar100_16_quick"}  # a group of one setting, and its picture


def main() -> None:
    for group, name in DRAWN.items():
        (lines,) = by_setting(list[ReportedRun](Group.read(group).runs))
        save(curves(lines, title(lines[0])), Folder(PLACE), name, ["png"])


if __name__ == "__main__":
    main()
