"""A model with a frozen encoder as one ONNX graph: images in, and out comes what `classify` says of them.

The encoder is a graph already. The classifier's arithmetic (`learners.exact`) is written behind it, and all of it is
compared with the model before anything is written.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from episodica.classifier.adapter import PointAdapter
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.engine.image_encoder import PIXELS
from episodica.engine.onnx_graph import EMBEDDINGS, Writer
from episodica.errors import InputError, not_installed
from episodica.files.atomic import write_atomically, write_json
from episodica.learners.calibration import LEAD
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import LARGEST, TINY, UNIT

FORMAT = 2
GRAPH = "recogniser.onnx"
IMAGES, OUTPUTS = "images", ("scores", "probabilities", "strangeness")
TOLERANCE = 1e-4
PROBES = 4  # images


def export_exact(recogniser: ExactRecogniser, folder: Path) -> float:
    """Write `recogniser.onnx` and `export.json`. The largest difference between the graph and the model, of a
    score, a probability or a strangeness."""
    graph, asked = graph_of(recogniser), _blots(recogniser.image_size)
    vectors = recogniser.embed(asked)
    expected = (
        recogniser.scores(vectors),
        recogniser.probabilities(vectors),
        recogniser.strange(vectors).values,
    )
    found = max(float(np.abs(a - b).max()) for a, b in zip(run(graph, asked), expected, strict=True))
    if not found <= TOLERANCE:
        raise InputError(
            f"the graph and the model differ by {found:.1e}, more than {TOLERANCE:g}: nothing was written. Try another "
            "version of onnxruntime"
        )
    limit = recogniser.limit
    record = {
        "format": FORMAT,
        "image_size": recogniser.image_size,
        "input": "float32 RGB, planes first, from 0 to 1; the graph normalises",
        "classes": recogniser.names,
        "limit": limit if np.isfinite(limit) else None,
        "difference": found,
    }
    write_atomically(folder / GRAPH, lambda part: part.write(graph))
    write_json(folder / "export.json", record)
    return found


def run(graph: bytes, squares: np.ndarray) -> list[np.ndarray]:
    """Scores [M, C], probabilities [M, C] and strangeness [M] of uint8 [M, S, S, 3]."""
    import onnxruntime

    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    planes = squares.transpose(0, 3, 1, 2).astype(np.float32) / 255
    return session.run(list(OUTPUTS), {IMAGES: planes})  # type: ignore[return-value]


def graph_of(recogniser: ExactRecogniser) -> bytes:
    if recogniser.encoder.graph is None:
        raise InputError("only encoders that run in onnxruntime are exported, and this one runs in torch")
    if not recogniser.names:
        raise InputError("the model knows no class: teach it some with `learn` or `remember` before you export it")
    try:
        from onnx import TensorProto, helper, load_from_string
    except ImportError:
        raise not_installed("the export needs onnx and onnxruntime", "export") from None

    model, size, classes = load_from_string(recogniser.encoder.graph), recogniser.image_size, len(recogniser.names)
    before, after = Writer("pixel"), Writer("answer")
    scaled = before.add("Mul", [IMAGES, _number(before, 255)])
    bounded = before.add("Clip", [before.add("Round", [scaled]), *_limits(before, 0, 255)])
    planes_last = before.add("Transpose", [bounded], perm=[0, 2, 3, 1])
    before.add("Cast", [planes_last], to_name=PIXELS, to=TensorProto.UINT8)
    point = _rounded(after, _direction(after, _vector(after, recogniser.encoder.widths)))
    if isinstance(recogniser.turn, PointAdapter):
        point = _turned(after, recogniser.turn, point)
    _write_answers(after, recogniser.classifier, point)

    nodes = [*before.nodes, *model.graph.node, *after.nodes]
    constants = [*before.constants, *model.graph.initializer, *after.constants]
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT)
    inputs = [value(IMAGES, shape=["images", 3, size, size])]
    outputs = [value(name, shape=["images", classes]) for name in OUTPUTS[:2]] + [value(OUTPUTS[2], shape=["images"])]
    graph = helper.make_graph(nodes, "recogniser", inputs, outputs, constants)
    whole = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return whole.SerializeToString()


def _vector(writer: Writer, widths: Sequence[int] | None) -> str:
    """What the encoder gives, part by part a direction where it has several parts."""
    if widths is None:
        return EMBEDDINGS
    ends = np.cumsum(widths)
    axis = writer.constant(np.array([1]))
    parts = [
        writer.add("Slice", [EMBEDDINGS, *(writer.constant(np.array([i])) for i in (end - width, end)), axis])
        for width, end in zip(widths, ends, strict=True)
    ]
    return writer.add("Concat", [_direction(writer, part) for part in parts], axis=1)


def _turned(writer: Writer, adapter: PointAdapter, point: str) -> str:
    change = _number(writer, adapter.change.T)
    return _rounded(writer, _at_length_1(writer, writer.add("Add", [point, writer.add("MatMul", [point, change])])))


def _rounded(writer: Writer, direction: str) -> str:
    """As in `statistics.rounded`, but times the unit."""
    whole = writer.add("Round", [writer.add("Mul", [direction, _number(writer, 1 / UNIT)])])
    return writer.add("Mul", [writer.add("Clip", [whole, *_limits(writer, -LARGEST, LARGEST)]), _number(writer, UNIT)])


def _write_answers(writer: Writer, classifier: ExactClassifier, point: str) -> None:
    add, number, whitening = writer.add, partial(_number, writer), classifier.whitening
    placed = add("Sub", [point, number(whitening.centre)])
    if whitening.inverse is not None:
        placed = add("MatMul", [placed, number(whitening.inverse.T)])
    cosines = add("MatMul", [_at_length_1(writer, placed), number(classifier.directions.T)])
    expected = classifier.calibration.expected(classifier.counts)
    add("Sub", [cosines, number(expected / 2)], to_name="scores")
    add("Softmax", [add("Div", ["scores", number(classifier.temperature)])], to_name="probabilities", axis=1)
    best = add("ArgMax", ["scores"], axis=1, keepdims=1)
    short = add("GatherElements", [add("Sub", [number(expected), cosines]), best], axis=1)
    if len(classifier.names) > 1:
        short = add("Sub", [short, add("Mul", [_lead(writer, best, len(classifier.names)), number(LEAD)])])
    add("Squeeze", [short, writer.constant(np.array([1]))], to_name="strangeness")


def _lead(writer: Writer, best: str, classes: int) -> str:
    """Of the highest score over the next one. [M, 1]"""
    axis, places = writer.constant(np.array([1])), writer.constant(np.arange(classes)[None])
    first = writer.add("ReduceMax", ["scores", axis], keepdims=1)
    others = writer.add("Where", [writer.add("Equal", [places, best]), _number(writer, -np.inf), "scores"])
    return writer.add("Sub", [first, writer.add("ReduceMax", [others, axis], keepdims=1)])


def _direction(writer: Writer, name: str) -> str:
    """As in `statistics.directions`."""
    least = writer.add("ReduceMin", [name, writer.constant(np.array([1]))], keepdims=1)
    positive = writer.add("GreaterOrEqual", [least, _number(writer, 0)])
    root = writer.add("Sqrt", [writer.add("Max", [name, _number(writer, 0)])])
    return _at_length_1(writer, writer.add("Where", [positive, root, name]))


def _at_length_1(writer: Writer, name: str) -> str:
    length = writer.add("ReduceL2", [name, writer.constant(np.array([1]))], keepdims=1)
    return writer.add("Div", [name, writer.add("Max", [length, _number(writer, TINY)])])


def _number(writer: Writer, value: float | np.ndarray) -> str:
    return writer.constant(np.asarray(value, np.float32))


def _limits(writer: Writer, least: float, greatest: float) -> list[str]:
    return [_number(writer, least), _number(writer, greatest)]


def _blots(size: int) -> np.ndarray:
    """Squares of colour: unlike noise, they move the deeper layers as pictures do. uint8 [M, S, S, 3]"""
    coarse = np.random.default_rng(0).integers(0, 256, (PROBES, 4, 4, 3), np.uint8)
    times = -(-size // 4)
    return coarse.repeat(times, 1).repeat(times, 2)[:, :size, :size]
