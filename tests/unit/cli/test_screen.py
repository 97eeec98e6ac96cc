from io import StringIO

from rich.table import Table
from rich.text import Text

from episodica.cli.screen import SafeConsole

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\udcff name"


def test_nothing_from_outside_steers_the_terminal() -> None:
    file = StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=200, color_system="standard")
    table = Table("class")
    table.add_row(HOSTILE)
    console.print(HOSTILE, markup=False)
    console.print(Text(HOSTILE))
    console.print(table)
    console.print(f"[red]error:[/] {HOSTILE}")
    written = file.getvalue()
    assert written.count("� name") >= 3
    written.encode()
    for steering in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\x07"):
        assert steering not in written
    assert "\x1b[31m" in written, "the command's own colours stay"
    assert written.count("\n") >= 7, "lines stay lines"
