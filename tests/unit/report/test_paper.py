"""The paper's numbers: cells typed by hand from the printed tables, and all of them against the LaTeX where it is.

The LaTeX is not part of this project; EPISODICA_TEST_PAPER names the file.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from episodica.report.paper import paper, paper_gap, paper_number

METHODS = ("FT", "IDA", "EIML", "ERD", "iCaRL", "UCIR", "PODNet")
RESULTS = paper()["results"]

# data set, tasks, shots, learner, backbone, metric, method, session: number
TYPED = [
    ("cifar100", 16, 1, "protonet", "conv4", "meta_test", "erd", 16, 50.5),
    ("cifar100", 16, 1, "protonet", "conv4", "seen", "ucir", 2, 53.6),
    ("cifar100", 16, 1, "protonet", "conv4", "meta_test", "podnet", "avg", 37.0),
    ("cifar100", 16, 5, "protonet", "conv4", "meta_test", "eiml", 4, 64.1),
    ("cifar100", 16, 5, "protonet", "conv4", "seen", "icarl", "avg", 67.4),
    ("mini_imagenet", 4, 1, "protonet", "conv4", "meta_test", "ft", 4, 37.9),
    ("cub", 4, 1, "protonet", "conv4", "meta_test", "ida", 2, 54.7),
    ("cifar100", 4, 1, "protonet", "resnet12", "meta_test", "ida", 3, 59.2),
    ("cub", 4, 1, "protonet", "resnet12", "meta_test", "erd", 4, 74.1),
    ("mini_imagenet", 4, 5, "protonet", "conv4", "meta_test", "erd", 4, 72.2),
    ("cifar100", 4, 5, "protonet", "conv4", "meta_test", "ft", 3, 71.2),
    ("mini_imagenet", 4, 5, "protonet", "resnet12", "meta_test", "eiml", 2, 74.6),
    ("cub", 4, 5, "protonet", "resnet12", "meta_test", "erd", 4, 89.6),
    ("cifar100", 16, 1, "relationnet", "conv4", "meta_test", "erd", 8, 45.7),
    ("mini_imagenet", 16, 1, "relationnet", "conv4", "meta_test", "ft", 16, 28.7),
    ("mini_imagenet", 4, 1, "relationnet", "conv4", "meta_test", "erd", 4, 49.73),
    ("cub", 4, 1, "relationnet", "conv4", "meta_test", "ft", 4, 50.3),
]
BOUNDS = [
    ("mini_imagenet", 1, "protonet", "conv4", 53.2),
    ("cub", 1, "protonet", "resnet12", 74.8),
    ("cifar100", 5, "protonet", "resnet12", 81.0),
    ("cifar100", 1, "relationnet", "conv4", 59.2),
]


def block_of(dataset, tasks, shots, learner, backbone):
    about = {"dataset": dataset, "tasks": tasks, "way": 5, "shots": shots, "learner": learner, "backbone": backbone}
    return next(block for block in RESULTS if about.items() <= block["setting"].items())


@pytest.mark.parametrize("cell", TYPED, ids=str)
def test_cells_typed_by_hand(cell):
    *where, metric, method, session, number = cell
    block = block_of(*where)
    assert block[metric][method][block["sessions"].index(session)] == number


@pytest.mark.parametrize(("dataset", "shots", "learner", "backbone", "number"), BOUNDS)
def test_bounds_typed_by_hand(dataset, shots, learner, backbone, number):
    assert block_of(dataset, 4, shots, learner, backbone)["joint"] == number


def test_intervals_and_components_typed_by_hand():
    intervals = next(block for block in RESULTS if "ci95" in block)
    assert intervals["ci95"] == {
        "ft": [0.18, 0.19, 0.21, 0.20],
        "ida": [0.18, 0.20, 0.24, 0.23],
        "eiml": [0.18, 0.19, 0.20, 0.20],
        "erd": [0.18, 0.20, 0.21, 0.21],
    }
    assert RESULTS[-1]["meta_test"]["eiml exemplars_in_meta_loss=True"] == [39.2, 42.6, 45.4, 45.5, 45.2]


def test_blocks_are_complete():
    assert len(RESULTS) == 2 + 12 + 6 + 1 + 1
    for block in RESULTS:
        for metric in ("meta_test", "seen", "ci95"):
            assert all(len(row) == len(block["sessions"]) for row in block.get(metric, {}).values())
    assert {place["table"] for block in RESULTS for place in block["printed"]} == {2, 3, 4, 5, 6, 7, "components"}


def test_a_run_finds_its_number_and_a_variant_only_where_the_paper_has_it(make_cifar_run):
    found = paper_number(make_cifar_run("erd"), "seen", 8)
    assert found is not None
    assert found.value == 53.7
    changes = (
        {"method.lambda_e": 0.0},
        {"method.cross": "released"},
        {"stream.validation_classes": 2},
        {"memory.per_class": 5},
        {"memory.total": 1000},
        {"memory.select": "random"},
    )
    for change in changes:
        assert paper_number(make_cifar_run("erd", **change), "meta_test", 16) is None
    component = paper_number(make_cifar_run("eiml", **{"method.exemplars_in_meta_loss": True}), "meta_test", 16)
    assert component is not None
    assert component.value == 45.5
    assert paper_number(make_cifar_run("ft", **{"memory.per_class": 5}), "meta_test", 16) is not None


def test_gaps_are_those_of_the_abstract_or_follow_from_the_upper_bound(make_cifar_run):
    gap = paper_gap(make_cifar_run("erd"))
    assert gap is not None
    assert gap.value == 5.0
    config, results = make_cifar_run("erd", **{"stream.tasks": 4})
    gap = paper_gap((config, results))
    assert gap is not None
    assert gap.value == pytest.approx(55.4 - 55.1)
    assert paper_gap(make_cifar_run("ft")) is None
    assert paper_gap(make_cifar_run("joint")) is None


def test_the_papers_bound_has_one_episode_a_step(make_cifar_run):
    four = {"stream.tasks": 4}
    found = paper_number(make_cifar_run("joint", **four), "meta_test", 4)
    assert found is not None
    assert found.value == 55.4
    assert paper_number(make_cifar_run("joint", **four, **{"train.episodes_per_step": 2}), "meta_test", 4) is None
    assert paper_number(make_cifar_run("joint", **four), "seen", 4) is None


def test_a_method_with_all_tasks_at_once_is_not_the_papers_bound(make_cifar_run):
    run = make_cifar_run("erd", **{"stream.tasks": 4, "stream.merged": True})
    assert run[0].is_bound
    assert paper_number(run, "meta_test", 4) is None


def test_a_bound_has_the_papers_number_wherever_it_stands(make_cifar_run):
    run = make_cifar_run("joint", **{"stream.tasks": 4, "learner.name": "relationnet", "backbone.pools": 2})
    places = [paper_number(run, "meta_test", session) for session in (4, 16)]
    assert [place and place.value for place in places] == [59.2, 59.2]


# An independent reading of the LaTeX: rows are split at their marks, multi-column cells are spread out.


@pytest.fixture(scope="module")
def documents() -> dict[str, str]:
    path = Path(os.environ.get("EPISODICA_TEST_PAPER", ""))
    if not path.is_file():
        pytest.skip("EPISODICA_TEST_PAPER does not name the paper's LaTeX: only the cells typed by hand are checked")
    main, supplement, *_ = path.read_text().split("\\end{document}")
    return {"main": main, "supplement": supplement}


def blocks(document: str, label: str) -> list[tuple[list[str], dict[str, list[str]]]]:
    """Of the table with a label: for each group of rows the cells of its line of bounds, and its rows by method."""
    end = document.index(f"\\label{{{label}}}")
    body = document[document.rindex("\\begin{tabular}", 0, end) : end]
    found, bounds = [], []
    for line in body.replace("\\hline", "").split("\\\\"):
        cells = list(spread(line))
        if any("Upper bound" in cell for cell in cells):
            bounds = cells[1:]
        elif cells[0].startswith("Sessions"):
            found.append((bounds, {}))
        elif cells[0] in METHODS:
            found[-1][1][cells[0].lower()] = cells[1:]
    return found


def spread(line: str) -> Iterator[str]:
    for cell in line.split("&"):
        wide = re.match(r"\s*\\multicolumn\{(\d+)\}\{[^}]*\}\{(.*)\}\s*$", cell, re.DOTALL)
        text = re.sub(r"\\textbf|[{}]", "", wide[2] if wide else cell).strip()
        yield from [text] * (int(wide[1]) if wide else 1)


def number(cell: str) -> float:
    return float(re.findall(r"\d+\.\d+", cell)[0])


PLACES = [
    (block, place) for block in RESULTS for place in block["printed"] if place["document"] in ("main", "supplement")
]


@pytest.mark.parametrize(("block", "place"), PLACES, ids=lambda one: str(one.get("table", "")))
def test_every_cell_is_what_stands_at_its_place(documents, block, place):
    bounds, rows = blocks(documents[place["document"]], place["label"])[place["block"] - 1]
    for metric in ("meta_test", "seen"):
        if metric not in place:
            continue
        columns = slice(place[metric] - 1, place[metric] - 1 + len(block["sessions"]))
        assert {method: list(map(number, row[columns])) for method, row in rows.items()} == block[metric]
        if "ci95" in block:
            widths = {
                method: [float(cell.split("\\textpm")[1]) for cell in row[columns]] for method, row in rows.items()
            }
            assert widths == block["ci95"]
    if "joint" in block:
        assert number(bounds[place["meta_test"] - 1]) == block["joint"]


def test_every_table_of_results_is_here_whole(documents):
    """No group of rows and no column of the LaTeX is left out."""
    for document, text in documents.items():
        for label in set(re.findall(r"\\label\{(tab:[^}]*)\}", text)) - {"tab:splitting"}:
            printed = sum(len(row) for _, rows in blocks(text, label) for row in rows.values())
            held = sum(
                len(row)
                for block, place in PLACES
                if (place["document"], place["label"]) == (document, label)
                for metric in ("meta_test", "seen")
                for row in block.get(metric, {}).values()
            )
            assert held == printed, (document, label)


def test_the_split_and_the_gaps(documents):
    split, gaps = paper()["split"], paper()["gaps"]
    table = documents["main"]
    table = table[table.index("Classes per task:") : table.index(split["printed"]["label"])]
    images = [split[f"{part}_images"] for part in ("train", "test") for _ in range(3)]
    expected = [*[split["classes_per_task"]] * 3, split["unseen_classes"], *images]
    assert [int(n) for n in re.findall(r"(?<=&) *(\d+)", table)] == expected
    assert f"{{*}}{{{split['unseen_images']}}}" in table
    abstract = re.sub(r"\s+", " ", documents["main"].split("\\end{abstract}")[0])
    sets = ("tiered_imagenet", "mini_imagenet", "cifar100")
    for method in ("eiml", "erd"):
        assert " / ".join(f"{gaps[method][name]}\\%" for name in sets) in abstract
