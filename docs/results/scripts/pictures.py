"""Draw the curves and the ablations of the results pages from the committed runs (`make results`).

python docs/results/scripts/pictures.py
"""

from committed import RESULTS, Group
from episodica.files.door import Folder
from episodica.report.ablation import ablations, principal
from episodica.report.aggregate import Line
from episodica.report.comparison import Run as ReportedRun
from episodica.report.figures.ablation import ablation_curves
from episodica.report.figures.canvas import save
from episodica.report.figures.curves import curves
from episodica.report.settings import by_setting, title

PLACE = RESULTS.parent / "images"
DRAWN = {"long": "cifar100_16_long", "quick": "cifar100_16_quick"}  # a group of one setting, and its picture
VARIED = {  # in the group `ablation`, and its picture
    "erd-p": "ablation_p",
    "erd-lambda_m-lambda_e": "ablation_lambda",
    "erd-per_class": "ablation_nex",
    "erd-total": "ablation_bf",
}


def main() -> None:
    for group, name in DRAWN.items():
        lines = _lines(group)
        save(curves(lines, title(lines[0])), Folder(PLACE), name, ["png"])
    lines = _lines("ablation")
    found = {one.name: one for one in ablations(lines)[0]}
    for varied, name in VARIED.items():
        others = [line for line in principal(lines) if line.config.method.name != found[varied].method]
        save(ablation_curves(found[varied], others), Folder(PLACE), name, ["svg"])


def _lines(group: str) -> list[Line]:
    (lines,) = by_setting(list[ReportedRun](Group.read(group).runs))
    return lines


if __name__ == "__main__":
    main()
