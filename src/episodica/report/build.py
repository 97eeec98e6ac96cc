"""From runs to a report, a section for each setting."""

from collections import Counter
from collections.abc import Sequence

from episodica.files.door import Folder
from episodica.report.ablation import Ablation, ablations, principal
from episodica.report.aggregate import Line
from episodica.report.cells import Cell, Row, Table
from episodica.report.comparison import METRICS, setting
from episodica.report.content import Part, Picture, Report, Section
from episodica.report.discovery import REPEATED, Found
from episodica.report.exemplars import exemplar_parts
from episodica.report.figures.ablation import ablation_curves
from episodica.report.figures.curves import arrangement, curves
from episodica.report.figures.forgetting import forgetting
from episodica.report.figures.losses import loss_curves, read_losses
from episodica.report.figures.matrix import heat_maps
from episodica.report.maps import map_part
from episodica.report.paired import paired_table
from episodica.report.settings import by_setting, tags, title
from episodica.report.tables import accuracy_table, forgetting_table

MATRIX = "Accuracy on each task (row) after each session (column): forgetting shows as rows that fade to the right."
ABLATION = (
    "Bars: 95 %, by session over episodes (thin lines: single runs), after the last session as in the table; dashed "
    "across: the other methods and joint training."
)
Where = dict[str, Folder]


def build(found: Sequence[Found], images: bool = False, maps: bool = False) -> Report:
    """With thumbnails of exemplars and maps of unseen classes where they are asked for: both need the data set."""
    where = {one.config.run_id: one.folder for one in found if one.run and one.config}
    settings = sorted(by_setting([one.run for one in found if one.run]), key=_place)
    beside = [part[0].config for part in settings]
    sections = [
        _section(part, tags(part[0].config, beside), where, number, _missing(part[0], found), images, maps)
        for number, part in enumerate(settings, start=1)
    ]
    overview = _overview(settings)
    runs = Section("Runs", (), (Part("", tables=(runs_table(found),)),))
    return Report((*([overview] if overview else []), *sections, runs))


def _place(part: Sequence[Line]) -> tuple[str, int, str, str, int, int]:
    """The same runs give the same order of sections, wherever they lie."""
    config, shape = part[0].config, part[0].runs[0][1].shape
    components = config.learner.name, config.backbone.name
    return config.data.name, config.stream.tasks, *components, shape["way"], shape["shots"]


def _missing(line: Line, found: Sequence[Found]) -> str:
    """The runs of its setting that no table can show, in words."""
    lacking = Counter(
        f"{one.config.method.name} ({one.state})"
        for one in found
        if one.config and one.run is None and one.state != REPEATED and setting(one.config) == line.setting
    )
    runs = ", ".join(f"{count} of {name}" for name, count in sorted(lacking.items()))
    return f"Not in the tables, because there is nothing to show yet: {runs}." if runs else ""


def _section(
    table: Sequence[Line], tagged: tuple[str, ...], where: Where, number: int, missing: str, images: bool, maps: bool
) -> Section:
    varied, rest = ablations(table)
    chosen = [line for line in table if line in (*principal(table), *rest)]
    parts = [
        _results(chosen, number, missing),
        _forgetting(chosen, number),
        _matrix(chosen, number),
        *(_ablation(one, chosen, where, number) for one in varied),
        _paired(chosen, where, number),
        _losses(chosen, where, number),
        *exemplar_parts(principal(table), where, images),
        map_part(principal(table), where, f"{number}-maps", maps),
    ]
    return Section(title(table[0]), tagged, tuple(part for part in parts if part), table[0].config.scale)


def _results(chosen: Sequence[Line], number: int, missing: str) -> Part:
    tables = tuple(accuracy_table(chosen, metric, f"{number}-{metric}") for metric in METRICS)
    caption = (
        "Accuracy by session. Bars: 95 % over episodes; thin lines: single runs; dashed and dotted: joint training."
    )
    return Part("Accuracy", missing, tables, (Picture(f"{number}-curves", caption, curves(chosen)),))


def _forgetting(chosen: Sequence[Line], number: int) -> Part | None:
    table = forgetting_table(chosen, f"{number}-forgetting")
    if table is None:
        return None
    return Part("Forgetting", "", (table,), (Picture(f"{number}-forgetting", table.title, forgetting(chosen)),))


def _matrix(chosen: Sequence[Line], number: int) -> Part | None:
    figure = heat_maps(chosen) if any(not line.bound for line in chosen) else None
    return Part("Accuracy matrix", "", (), (Picture(f"{number}-matrix", MATRIX, figure),)) if figure else None


def _ablation(one: Ablation, chosen: Sequence[Line], where: Where, number: int) -> Part:
    base = next(line for line in one.lines if line in chosen)
    references = [line for line in chosen if line.config.method.name != one.method]
    name = f"{number}-ablation-{one.name}"
    bounds = [line for line in references if line.bound]
    values = {line.name: value for value, line in one.members}
    table = accuracy_table([*one.lines, *bounds], "meta_test", name)
    pairs = paired_table(one.lines, base, where, f"{name}-paired")
    caption = f"{one.method}: {one.family.heading}. {ABLATION}"
    picture = Picture(name, caption, ablation_curves(one, references))
    heading = f"Ablation of {one.method}: {one.family.heading}"
    about = f"{base.name} ({values[base.name]}) is the one of the tables above."
    return Part(heading, about, (table, *([pairs] if pairs else [])), (picture,))


def _paired(chosen: Sequence[Line], where: Where, number: int) -> Part | None:
    """Each method against the first, and against the bounds."""
    incremental = [line for line in chosen if not line.bound]
    references = [*incremental[:1], *(line for line in chosen if line.bound)]
    found = [
        paired_table(incremental, reference, where, f"{number}-paired-{place}")
        for place, reference in enumerate(references, start=1)
    ]
    tables = tuple(table for table in found if table)
    about = "Every run answers the same questions, so differences are taken episode by episode, for each repeat."
    return Part("Paired comparison", about, tables) if tables else None


def _losses(chosen: Sequence[Line], where: Where, number: int) -> Part | None:
    """Of the first repeat of each line."""
    read = [(line.name, read_losses(where[line.counted[0][0].run_id])) for line in chosen]
    logged = [(name, losses) for name, losses in read if losses.terms]
    if not logged:
        return Part("Training", "No events.jsonl beside these results, so there are no training curves.")
    lost = sum(losses.unreadable for _, losses in logged)
    about = f"{lost} lines of events.jsonl could not be read and are left out." if lost else ""
    caption = "Loss terms, weighted as they are summed, of the first run of each line; upright lines: a session begins."
    return Part("Training", about, (), (Picture(f"{number}-losses", caption, loss_curves(logged)),))


def _overview(settings: Sequence[Sequence[Line]]) -> Section | None:
    """Settings of one schedule beside each other: they differ in data set and shots, or in what their rows say."""
    groups: dict[str, list[Sequence[Line]]] = {}
    beside = [part[0].config for part in settings]
    for part in settings:
        about = f"{part[0].config.stream.tasks} tasks", *tags(part[0].config, beside)
        groups.setdefault(", ".join(about), []).append(principal(part))
    parts = [
        Part(name, "", (), (Picture(f"overview-{place}", f"Accuracy by session: {name}.", arrangement(group)),))
        for place, (name, group) in enumerate(groups.items(), start=1)
        if len(group) > 1
    ]
    return Section("Overview", (), tuple(parts)) if parts else None


def runs_table(found: Sequence[Found]) -> Table:
    columns = ("state", "sessions", "order", "seed", "scale", "training, min", "evaluation, min", "folder", "remark")
    return Table("runs", "Every run and its state", columns, tuple(map(_run, found)), first="run")


def _run(one: Found) -> Row:
    config, results = one.config, one.results
    if config is None:
        return Row(one.folder.path.name, _words(one.state, "", "", "", "", "", "", one.place, one.remark))
    sessions = results.sessions if results else []
    expected = 1 if config.is_bound else config.stream.learned
    minutes = [sum(getattr(s, f"seconds_{part}") for s in sessions) / 60 for part in ("train", "eval")]
    reached = f"{len(sessions)} of {expected}"
    about = (one.state, reached, str(config.stream.seed), str(config.seed), f"{config.scale:g}")
    return Row(config.run_id, _words(*about, *(f"{m:.1f}" for m in minutes), one.place, one.remark))


def _words(*words: str) -> tuple[Cell, ...]:
    return tuple(Cell(word=word) for word in words)
