"""onnxruntime against torch on exported graphs: `python tests/bench/onnx_speed.py MODEL DIR` after `episodica export`.

One thread each, interleaved rounds. Prints a row for each shape: milliseconds, and torch's time in units of ONNX's.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from episodica.bench.timing import Case, Effort, interleaved
from episodica.classifier.export import Exportable, exportable
from episodica.classifier.onnx_graphs import FewShot
from episodica.rng import generator


def main(model: Path, folder: Path) -> None:
    torch.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    what = exportable(model)
    assert isinstance(what, Exportable), "a trained model is measured"
    encoder = what.encoder().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    few_shot = FewShot(encoder, what.temperature)
    encode, classify = (
        onnxruntime.InferenceSession(folder / f"{name}.onnx", options) for name in ("encoder", "classifier")
    )

    def pictures(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, 3, what.image_size, what.image_size, generator=generator("speed", *shape))

    out = sys.stdout
    out.write("| what | torch ms | onnxruntime ms | times as fast | largest difference |\n|---|---|---|---|---|\n")
    for count in (1, 25, 100):
        given = {"images": pictures(count)}
        _row(f"encoder, {count} images", encoder, encode, given)
    for way, shots, queries in ((5, 1, 1), (5, 5, 15), (20, 5, 20)):
        given = {"support": pictures(way, shots), "queries": pictures(queries)}
        _row(f"classifier, {way}-way {shots}-shot, {queries} queries", few_shot, classify, given)


def _row(
    name: str, module: torch.nn.Module, session: onnxruntime.InferenceSession, given: dict[str, torch.Tensor]
) -> None:
    arrays = {key: tensor.numpy() for key, tensor in given.items()}

    def torch_answer() -> np.ndarray:
        with torch.inference_mode():
            return module(**given).numpy()

    def onnx_answer() -> np.ndarray:
        return np.asarray(session.run(None, arrays)[0])

    expected = torch_answer()
    difference = float(np.abs(expected - onnx_answer()).max())
    slow, quick = interleaved(
        [Case("torch", torch_answer), Case("onnx", onnx_answer)], Effort(rounds=9, steps=6), reference="torch"
    )
    sys.stdout.write(f"| {name} | {slow.ms:.1f} | {quick.ms:.1f} | {quick.ratio:.2f} | {difference:.0e} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
