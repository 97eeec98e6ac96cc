"""Tiny random models of several families, written to disk as Hugging Face does, against transformers itself."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from episodica.config import resolve
from episodica.engine.experiment import new_learner
from episodica.engine.image_encoder import ImageEncoder
from episodica.errors import InputError
from episodica.models.hub import MOST_CONFIG, Hub
from episodica.rng import generator, seeded

transformers = pytest.importorskip("transformers", reason="the extra `hub` is not installed")

WIDTH, SIZE = 16, 32
VIT = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": SIZE, "patch_size": 8}
SIGHT = {**VIT, "intermediate_size": 24}
TEXT = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "intermediate_size": 8,
    "vocab_size": 50_000,
}
STAGES = {"hidden_sizes": [4, 8, 12, WIDTH], "depths": [1, 1, 1, 1]}

FAMILIES: dict[str, Callable[[Any], Any]] = {
    "dinov2": lambda t: t.Dinov2Model(t.Dinov2Config(**VIT)),
    "vit": lambda t: t.ViTModel(t.ViTConfig(**SIGHT)),
    "convnext": lambda t: t.ConvNextModel(t.ConvNextConfig(**STAGES)),
    "resnet": lambda t: t.ResNetModel(t.ResNetConfig(embedding_size=4, **STAGES)),
    "clip": lambda t: t.CLIPModel(t.CLIPConfig(vision_config=SIGHT, text_config=TEXT, projection_dim=8)),
    "siglip": lambda t: t.SiglipModel(t.SiglipConfig(vision_config=SIGHT, text_config=TEXT)),
}
PROCESSOR = {
    "do_center_crop": True,
    "size": {"shortest_edge": 40},
    "crop_size": {"height": SIZE, "width": SIZE},
    "image_mean": [0.1, 0.2, 0.3],
    "image_std": [0.4, 0.5, 0.6],
}


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def written(family: str, processor: dict[str, Any] | None = PROCESSOR) -> Path:
        folder = tmp_path_factory.mktemp(family)
        transformers.logging.disable_progress_bar()
        transformers.logging.set_verbosity_error()
        with seeded(family):
            FAMILIES[family](transformers).eval().save_pretrained(folder)
        if processor is not None:
            (folder / "preprocessor_config.json").write_text(json.dumps(processor))
        return folder

    return written


def backbone(folder: Path) -> Hub:
    with seeded("hub"):
        found = Hub(model=str(folder))
    found.load_pretrained()
    return found.eval()


def images(size: int = SIZE) -> torch.Tensor:
    return torch.randn(2, 3, size, size, generator=generator("images", size))


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_are_those_of_transformers(family, write):
    folder = write(family)
    found = backbone(folder)
    with seeded("reference"):
        model = transformers.AutoModel.from_pretrained(folder).eval()
    tower = model.vision_model if family in ("clip", "siglip") else model
    with torch.no_grad():
        theirs = tower(pixel_values=images())
        expected = theirs.last_hidden_state[:, 0] if family == "vit" else theirs.pooler_output.flatten(1)
        ours = found(images())
    torch.testing.assert_close(ours, expected)
    assert ours.shape[1:] == found.out_shape(SIZE) == (WIDTH,)
    assert found.last_maps(images()).shape[1:] == found.map_shape(SIZE)
    assert found(images(48)).shape == (2, WIDTH)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_takes_size_mean_and_deviation_from_the_processor(family, write):
    config = resolve({"backbone": {"name": "hub", "model": str(write(family))}})
    assert config.image_size == SIZE
    assert config.augment.mean == (0.1, 0.2, 0.3)
    assert config.augment.std == (0.4, 0.5, 0.6)
    learner = new_learner(config, torch.device("cpu"))
    assert not any(p.requires_grad for p in learner.backbone.parameters())


@pytest.mark.parametrize(
    ("processor", "size"),
    [
        ({"size": 48}, 48),
        ({"size": {"height": 40, "width": 40}, "do_center_crop": False, "crop_size": 8}, 40),
        ({"size": {"shortest_edge": 24}}, 24),
        (None, SIZE),
    ],
)
def test_the_size_is_what_the_processor_leaves(processor, size, write):
    assert Hub.declared(model=str(write("vit", processor)), train_="none").input_size == size


def test_images_of_any_size_are_embedded(write):
    found = backbone(write("dinov2"))
    encoder = ImageEncoder.of(found, threads=1)
    assert (encoder.engine, encoder.size) == ("torch", SIZE)
    photo = torch.randint(256, (50, 70, 3), generator=generator("photo"), dtype=torch.uint8).numpy()
    assert encoder.embed([photo]).vectors.shape == (1, WIDTH)


def test_training_all_of_it_gives_every_used_weight_a_gradient(write):
    config = resolve({"backbone": {"name": "hub", "model": str(write("convnext")), "train": "all"}})
    learner = new_learner(config, torch.device("cpu")).train()
    learner.embed(images()).square().sum().backward()
    assert all(p.grad is not None for p in learner.backbone.parameters())


def test_classes_that_it_may_have_seen_are_warned_of(write):
    hub = {"name": "hub", "model": str(write("vit"))}
    warning = resolve({"data": {"name": "mini_imagenet"}, "backbone": hub}).seen_before
    assert warning is not None
    assert "is not known here" in warning
    assert "its classes may not be unseen" in warning
    assert resolve({"data": {"name": "cub"}, "backbone": hub}).seen_before is None


def test_a_model_that_is_not_there_is_named_with_the_command_that_gets_it():
    with pytest.raises(InputError, match=r"^nobody/nothing is neither .*: get it with `hf download nobody/nothing`$"):
        Hub(model="nobody/nothing")


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no model: it has no config\.json"):
        resolve({"backbone": {"name": "hub", "model": str(tmp_path)}})


def test_only_safetensors_are_read(write):
    folder = write("resnet")
    weights = folder / "model.safetensors"
    torch.save({"weight": torch.zeros(1)}, folder / "pytorch_model.bin")
    weights.unlink()
    with seeded("hub"):
        found = Hub(model=str(folder))
    with pytest.raises(InputError, match="has no weights as safetensors"):
        found.load_pretrained()


def test_code_that_comes_with_a_model_is_not_run(tmp_path):
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass C: pass\n")
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModel": "evil.C"}, "hidden_size": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="transformers cannot load"):
        Hub(model=str(tmp_path))
    assert not (tmp_path / "ran").exists()


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "too long": (lambda path: os.truncate(path, MOST_CONFIG + 1), "more than 16,777,216 bytes"),
    "too deep": (lambda path: path.write_text("[" * 100_000), "nested more than 40 deep"),
    "device": (lambda path: (path.unlink(), path.symlink_to("/dev/zero")), "is not a file"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "is not a file"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_config_is_read_within_limits(tmp_path, kind, monkeypatch):
    """Before transformers reads it, which has none."""
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda *_, **__: pytest.fail("it was read"))
    (tmp_path / "config.json").touch()
    harm, said = HOSTILE[kind]
    harm(tmp_path / "config.json")
    with pytest.raises(InputError, match=f"config.json .*{said}"):
        Hub(model=str(tmp_path))


def test_a_config_may_be_a_link_as_among_downloaded_models(write, tmp_path):
    for path in write("vit").iterdir():
        (tmp_path / path.name).symlink_to(path)
    with seeded("hub"):
        assert Hub(model=str(tmp_path)).input_size == SIZE


def test_maps_for_relation_networks_are_refused_with_the_config(write):
    with pytest.raises(InputError, match="no maps of 4 x 4"):
        resolve({"backbone": {"name": "hub", "model": str(write("vit"))}, "learner": {"name": "relationnet"}})
