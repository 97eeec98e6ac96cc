"""A convolutional backbone as an ONNX graph, from bytes to embeddings, in a fraction of a second.

`torch.onnx` would take some twenty seconds for it. A few kinds of layers are enough for our networks, so those are
translated here, one by one; a network with another kind is left to torch.
"""

import json
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, fx, nn

from episodica.engine.image_encoder import PIXELS, WIDTHS
from episodica.models.backbone import Backbone, Triple
from episodica.models.efficientnet_lite import SamePad

OPSET, IR = 18, 9
EMBEDDINGS = "embeddings"


class NotTranslatable(Exception):
    """The network has a layer of another kind."""


def graph_of(backbone: Backbone, size: int, mean: Triple, std: Triple, widths: Sequence[int] | None = None) -> bytes:
    """Of a backbone in evaluation mode whose batch-norms are folded. uint8 [M, S, S, 3] -> [M, *E]

    `widths` are those of the means of maps before the embedding, and its own, where there are any.
    """
    from onnx import TensorProto, helper

    writer = Writer()
    offset, scale = (np.array(numbers, np.float32).reshape(3, 1, 1) for numbers in (mean, std))
    planes = writer.add("Transpose", [writer.add("Cast", [PIXELS], to=TensorProto.FLOAT)], perm=[0, 3, 1, 2])
    scaled = writer.add("Mul", [planes, writer.constant(1 / (255 * scale))])
    normalised = Named(writer.add("Sub", [scaled, writer.constant(offset / scale)]), torch.zeros(1, 3, size, size))
    out = Translation(_traced(backbone, len(widths or (1,))), writer).run(normalised)
    writer.add("Identity", [out.name], to_name=EMBEDDINGS)

    inputs = helper.make_tensor_value_info(PIXELS, TensorProto.UINT8, ["images", size, size, 3])
    outputs = helper.make_tensor_value_info(EMBEDDINGS, TensorProto.FLOAT, ["images", *out.value.shape[1:]])
    graph = helper.make_graph(writer.nodes, backbone.name, [inputs], [outputs], writer.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    if widths:
        helper.set_model_props(model, {WIDTHS: json.dumps(list(widths))})
    return model.SerializeToString()


class Whole(nn.Module):
    """Normalised images to embeddings, without anything else that a backbone is.

    With several `depths` they begin with the means of the maps of so many blocks less one, those before the last.
    """

    def __init__(self, backbone: Backbone, depths: int = 1) -> None:
        super().__init__()
        self.blocks, self.pool, self.depths = backbone.blocks, backbone.pool, depths

    def forward(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, *E]
        if self.depths == 1:
            return self.pool(self.blocks(images))
        maps, found = images, []
        for block in self.blocks:
            maps = block(maps)
            found.append(maps)
        return torch.cat([*(early.mean((2, 3)) for early in found[-self.depths : -1]), self.pool(maps)], 1)


class Layers(fx.Tracer):
    """What looks at the side of its input is one layer, like those of torch."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, SamePad) or super().is_leaf_module(m, module_qualified_name)


def _traced(backbone: Backbone, depths: int) -> fx.GraphModule:
    network = Whole(backbone, depths)
    try:
        return fx.GraphModule(network, Layers().trace(network))
    except Exception as error:  # whatever a network does with what it takes for a tensor
        raise NotTranslatable(f"{backbone.name}: {error}") from error


class Writer:
    """Nodes and constants of a graph, under names of our own, which begin with a prefix."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, inputs: Sequence[str], to_name: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = to_name or f"{self.prefix}node{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        from onnx import numpy_helper

        name = f"{self.prefix}constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def numbers(self, tensor: Tensor) -> str:
        return self.constant(tensor.detach().cpu().contiguous().numpy())


class Named(NamedTuple):
    """A name in the graph, and a value of the right shape."""

    name: str
    value: Tensor


class Translation(fx.Interpreter):
    """Goes through the network once, with one image, and writes a node for each layer."""

    def __init__(self, network: fx.GraphModule, writer: Writer) -> None:
        super().__init__(network)
        self.extra_traceback = False  # which would be added to the messages of our own errors
        self.writer = writer

    @torch.no_grad()
    def run_node(self, n: fx.Node) -> Any:
        given, options = self.fetch_args_kwargs_from_env(n)
        if n.op == "placeholder":
            return next(self.args_iter)
        if n.op == "output":
            return given[0]
        values = [part.value if isinstance(part, Named) else part for part in given]
        names = [part.name for part in given if isinstance(part, Named)]
        if n.op == "call_module":
            layer = self.submodules[str(n.target)]
            return Named(self._layer(layer, names[0], values[0]), layer(*values))
        if n.op == "call_method" and not options:
            return Named(self._method(str(n.target), names[0], values), getattr(values[0], str(n.target))(*values[1:]))
        if n.op == "call_function" and n.target in (operator.add, torch.add) and len(names) == 2:
            return Named(self.writer.add("Add", names), values[0] + values[1])
        if n.op == "call_function" and n.target is torch.cat:
            parts, axis = given
            return Named(
                self.writer.add("Concat", [part.name for part in parts], axis=axis),
                torch.cat([part.value for part in parts], axis),
            )
        raise NotTranslatable(f"{n.op} {n.target}")

    def _layer(self, layer: nn.Module, name: str, value: Tensor) -> str:
        match layer:
            case nn.Conv2d():
                return self._convolution(layer, name)
            case SamePad():
                (top, bottom), (left, right) = (layer.margins(side) for side in value.shape[-2:])
                pads = np.array([0, 0, top, left, 0, 0, bottom, right], np.int64)
                return self.writer.add("Pad", [name, self.writer.constant(pads)])
            case nn.ReLU6():
                limits = [self.writer.constant(np.array(limit, np.float32)) for limit in (0, 6)]
                return self.writer.add("Clip", [name, *limits])
            case nn.ReLU():
                return self.writer.add("Relu", [name])
            case nn.LeakyReLU():
                return self.writer.add("LeakyRelu", [name], alpha=layer.negative_slope)
            case nn.MaxPool2d(padding=0, dilation=1, ceil_mode=False):
                sides, strides = [layer.kernel_size] * 2, [layer.stride] * 2
                return self.writer.add("MaxPool", [name], kernel_shape=sides, strides=strides)
            case nn.Identity():
                return name
            case _:
                raise NotTranslatable(type(layer).__name__)

    def _convolution(self, conv: nn.Conv2d, name: str) -> str:
        if not isinstance(conv.padding, tuple) or conv.padding_mode != "zeros":
            raise NotTranslatable(f"padding {conv.padding} {conv.padding_mode}")
        weights = [self.writer.numbers(t) for t in (conv.weight, conv.bias) if t is not None]
        return self.writer.add(
            "Conv",
            [name, *weights],
            kernel_shape=conv.kernel_size,
            strides=conv.stride,
            dilations=conv.dilation,
            group=conv.groups,
            pads=[*conv.padding, *conv.padding],
        )

    def _method(self, method: str, name: str, values: Sequence[Any]) -> str:
        match method, *values[1:]:
            case "mean" | "amax", (int(), int()) as axes:
                kind = {"mean": "ReduceMean", "amax": "ReduceMax"}[method]
                return self.writer.add(kind, [name, self.writer.constant(np.array(axes, np.int64))], keepdims=0)
            case "flatten", 1:
                return self.writer.add("Flatten", [name], axis=1)
            case _:
                raise NotTranslatable(f"{method}{tuple(values[1:])}")
