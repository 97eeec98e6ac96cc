"""`episodica tune`: choose settings on validation classes."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml
from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from episodica.cli.overrides import Tokens, parse
from episodica.cli.screen import INTERRUPTED, OK, app, complaints, say, screen
from episodica.config.flat import flatten
from episodica.engine.device import check_device, keep_freed_memory
from episodica.errors import InputError, Interrupted
from episodica.files.door import Folder
from episodica.sweep.recipe import default_recipe, load_recipe
from episodica.tune.axis import parse_axis
from episodica.tune.space import Space

if TYPE_CHECKING:
    from episodica.tune.findings import Findings, Tried
    from episodica.tune.search import Search

BEST, TRIES, PICTURE = "best.yaml", "tries.csv", "what-mattered"


@app.command(usage="Usage: episodica tune [RECIPE] --over KEY.PATH=LOW:HIGH [--key.path VALUE ...] [OPTIONS]")
def tune(
    *tokens: Tokens,
    over: Annotated[
        list[str] | None,
        Parameter(
            help="a setting and its values: method.p=0:1, train.lr=1e-4:1e-2:log, memory.select=ntc,rb; several times",
            negative="",
        ),
    ] = None,
    tries: Annotated[int, Parameter(help="how many in all, those of earlier calls and other processes included")] = 20,
    out: Annotated[Path, Parameter(help="folder of the search; the same one continues it")] = Path("tuned"),
) -> int:
    """Choose settings of a recipe by trying them, on validation classes: the meta-test classes stay untouched.

    Each try is a run of the recipe with the last classes of its stream held out (`--stream.validation_classes`, by
    default twice `shape.way`), and is judged by the accuracy on these. Tries that are worse than most after a session
    are stopped. The same command continues a search that was interrupted; several processes may share it.
    """
    name, overrides = parse(tokens)
    recipe = load_recipe(name or default_recipe(overrides))
    if tries < 1:
        raise InputError(f"--tries {tries}: at least 1 is needed")
    space = Space.of(recipe, flatten(overrides), [parse_axis(text) for text in over or []])
    config = space.config(space.usual)
    check_device(config.device, config.precision)
    from episodica.tune.search import Search

    keep_freed_memory()
    search = Search(space, out)
    say(f"Searching over {', '.join(map(str, space.axes))}.")
    say(f"Judged by the accuracy on {space.validation_classes} classes of the stream that no try learns.")
    ended = _work(search, tries)
    from episodica.tune.findings import Findings

    if ended == OK:
        _show(search, Findings.of(search), out)
    return ended


def _work(search: "Search", tries: int) -> int:
    from episodica.cli.progress_bars import ProgressBars
    from episodica.engine.run import stopping_gently
    from episodica.tune.findings import Tried

    with search.working(), stopping_gently(complaints.print) as stop:
        while not stop() and (attempt := search.next_try(tries)):
            labels = {attempt.config.run_id: f"try {attempt.number}"}
            try:
                with ProgressBars(screen, labels) if screen.is_terminal else nullcontext() as bars:
                    search.carry_out(attempt, bars.on_event_for(attempt.config) if bars else _silent, stop)
            except Interrupted:
                break
            _say_end(Tried.of(search.study.trials[attempt.number - 1]))
        if stop():
            screen.print("Interrupted; everything is saved. Run the same command again to continue.")
            return INTERRUPTED
    return OK


def _silent(event: Mapping[str, Any]) -> None:
    """Where nobody watches, the line at the end of a try says enough."""


def _say_end(tried: "Tried") -> None:
    from episodica.tune.findings import shown

    values = "  ".join(f"{path} {shown(value)}" for path, value in tried.values.items())
    say(f"try {tried.number}: {values}  ->  {_accuracy(tried)}, {tried.state} after session {tried.sessions}")
    if tried.reason:
        say(f"  {tried.reason}", complaints)


def _accuracy(tried: "Tried") -> str:
    if tried.accuracy is None:
        return "-"
    return f"{100 * tried.accuracy:.1f}" + (f" ± {100 * tried.ci95:.1f}" if tried.ci95 is not None else "")


def _show(search: "Search", findings: "Findings", out: Path) -> None:
    from episodica.report.figures.canvas import save
    from episodica.tune.findings import shown
    from episodica.tune.picture import what_mattered

    space, best, folder = search.space, findings.best, Folder(out)
    paths = [axis.path for axis in space.axes]
    table = Table("try", *paths, "accuracy, %", "sessions", "", box=SIMPLE_HEAD, padding=(0, 1))
    for tried in findings.tries:
        values = [escape(shown(tried.values.get(path, "-"))) for path in paths]
        table.add_row(str(tried.number), *values, _accuracy(tried), str(tried.sessions), tried.state)
    screen.print(table)
    chosen = f"{100 * best.accuracy:.1f} % on {space.validation_classes} validation classes" if best.accuracy else ""
    about = f"{space.recipe.name}, chosen by episodica tune: {chosen}, {findings.count()}"
    folder.write_text(BEST, yaml.safe_dump(space.best_recipe(best.values, about), sort_keys=False, allow_unicode=True))
    folder.write_text(TRIES, findings.as_csv())
    try:
        save(what_mattered(findings, space.axes), folder, PICTURE, ["png"])
        drawn = f"What mattered is drawn in {out / PICTURE}.png"
    except InputError as error:
        drawn = f"No picture: {error}"
    shares = ", ".join(f"{path} {share:.0%}" for path, share in findings.mattered.items())
    say(f"{drawn}{': ' + shares if shares else ' (too few finished tries to weigh the settings)'}.")
    say(f"The best of {findings.count()}, so that its own number flatters it. On the meta-test classes, once:")
    say(f"  episodica run {out / BEST}")
