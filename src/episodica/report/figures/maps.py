"""Maps of unseen classes: their embeddings on the two main axes (PCA), session by session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from episodica.report.figures.canvas import PALETTE, grid, styled


@dataclass(frozen=True, eq=False)
class Map:
    line: str
    session: int
    points: Tensor  # [M, 2]
    share: float  # of the variance that the two axes hold
    classes: Tensor  # [M], counted from 0


def main_axes(embeddings: Tensor, before: Tensor | None = None) -> tuple[Tensor, float]:
    """[M, D] -> [M, 2] and the share of the variance; an axis has the sign that agrees with the map before."""
    centred = (embeddings - embeddings.mean(0)).double()
    left, strengths, _ = torch.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * strengths[:2]
    reference = points.pow(3).sum(0) if before is None else (points * before).sum(0)
    signs = torch.where(reference < 0, -1.0, 1.0)
    return points * signs, float(strengths[:2].square().sum() / strengths.square().sum().clamp_min(1e-30))


@styled
def embedding_maps(maps: Sequence[Map]) -> Any:
    """A row a line, a column a session; colours are classes, numbered as the caption names them."""
    names = list(dict.fromkeys(one.line for one in maps))
    sessions = sorted({one.session for one in maps})
    figure, panels = grid(len(names), len(sessions), 2.5, 2.5)
    for axes in panels.flat:
        axes.set_axis_off()
    for one in maps:
        axes = panels[names.index(one.line)][sessions.index(one.session)]
        for number in one.classes.unique().tolist():
            own = one.points[one.classes == number]
            shade = PALETTE[number % len(PALETTE)]
            axes.scatter(own[:, 0], own[:, 1], s=7, alpha=0.65, color=shade, linewidths=0, label=str(number + 1))
        axes.set_title(f"{one.line}, session {one.session} ({100 * one.share:.0f} %)", fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), markerscale=2.5)
    return figure
