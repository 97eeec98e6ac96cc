"""Event files of TensorBoard, a folder for each run: `tensorboard --logdir OUT/tensorboard`."""

from collections.abc import Mapping
from io import BytesIO

import numpy as np
from PIL import Image
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from torch.utils.tensorboard import SummaryWriter

from episodica.files.door import Folder
from episodica.loggers.logger import Along, Ended, LoggedRun, Logger, ResultsTable


class TensorBoard(Logger):
    place = "tensorboard --logdir {out}/tensorboard"

    def __init__(self, run: LoggedRun) -> None:
        folder = Folder(run.out) / "tensorboard"
        folder.remove_tree(run.id)
        (folder / run.id).make()
        self._writer = SummaryWriter(str(folder.path / run.id), purge_step=0)
        self._writer.add_text("run", f"{run.label}\n\n{run.about}")
        self._writer.add_text("config", "\n".join(f"    {path}: {value}" for path, value in run.settings.items()))
        self._writer._get_file_writer().add_summary(hparams_pb(_plain(run.settings), trial_id=run.id))

    def points(self, along: Along, at: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, at)

    def table(self, table: ResultsTable) -> None:
        self._writer.add_text(table.name, table.markdown())

    def picture(self, name: str, png: bytes) -> None:
        with Image.open(BytesIO(png)) as image:
            self._writer.add_image(name, np.asarray(image.convert("RGB")), dataformats="HWC")

    def flush(self) -> None:
        self._writer.flush()

    def close(self, ended: Ended) -> None:
        self._writer.add_text("ended", ended)
        self._writer.close()


def _plain(settings: Mapping[str, object]) -> dict[str, bool | float | str]:
    """What the page of hyper-parameters can compare."""
    return {path: v if isinstance(v, bool | int | float) else str(v) for path, v in settings.items()}
