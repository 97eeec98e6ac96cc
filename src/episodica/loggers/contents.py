"""What loggers show of a run that has ended, besides its curves: tables and pictures."""

from collections.abc import Iterator

from episodica.config import RunConfig
from episodica.loggers.logger import ResultsTable
from episodica.records.results import Results
from episodica.report.figures.canvas import png
from episodica.report.figures.curves import curves
from episodica.report.figures.matrix import heat_maps
from episodica.report.settings import by_setting

COLUMNS = ("session", "classes seen", "unseen", "unseen ci95", "seen", "seen ci95", "forgetting", "seconds")


def tables(results: Results) -> Iterator[ResultsTable]:
    """One for each way and number of shots."""
    for evaluation in results.each_evaluation():
        rows = [
            (
                row.session,
                row.classes_seen,
                row.meta_test.mean,
                row.meta_test.ci95,
                row.seen.mean,
                row.seen.ci95,
                row.forgetting,
                row.seconds_train,
            )
            for row in evaluation.sessions
        ]
        if rows:
            yield ResultsTable("results {way}-way {shots}-shot".format(**evaluation.shape), COLUMNS, rows)


def pictures(config: RunConfig, results: Results) -> dict[str, bytes]:
    """By name, as PNG; they need matplotlib."""
    (lines, *_) = by_setting([(config, results)])
    drawn = {"curves": curves(lines), "accuracy matrix": heat_maps(lines)}
    return {name: png(figure) for name, figure in drawn.items() if figure is not None}
