import json

from rich.console import Console

from episodica.bench.section import Section
from episodica.bench.show import markdown, rendered, to_json
from episodica.bench.timing import Row

SECTION = Section(
    "Training",
    [Row("slow", 1234.5, 1.0, None, [1234.5]), Row("fast", 12.34, 100.04, 0.512, [12.0, 12.34, 13.0])],
    ["the machine is shared"],
    {"ms": [1.0, 2.0]},
)


def test_markdown() -> None:
    assert markdown(SECTION).splitlines() == [
        "| Training | ms | ratio | of peak |",
        "|---|---:|---:|---:|",
        "| slow | 1,234 | 1.00 |  |",
        "| fast | 12.3 | 100.04 | 51% |",
        "",
        "The machine is shared.",
    ]


def test_the_table_has_every_row_and_note() -> None:
    screen = Console(width=100)
    with screen.capture() as captured:
        screen.print(rendered(SECTION))
    text = captured.get()
    assert all(word in text for word in ("Training", "slow", "100.04", "51%", "the machine is shared"))


def test_json_has_the_rows_with_the_machine() -> None:
    saved = json.loads(json.dumps(to_json([SECTION], {"cores": 2}, {"rounds": 3})))
    assert saved["machine"] == {"cores": 2}
    assert saved["asked"] == {"rounds": 3}
    assert saved["rows"] == [
        {"part": "Training", "name": "slow", "ms": 1234.5, "ratio": 1.0, "of_peak": None, "rounds": [1234.5]},
        {"part": "Training", "name": "fast", "ms": 12.34, "ratio": 100.04, "of_peak": 0.512, "rounds": [12, 12.34, 13]},
    ]
    assert saved["notes"] == {"Training": ["the machine is shared"]}
    assert saved["series"] == {"Training": {"ms": [1.0, 2.0]}}
