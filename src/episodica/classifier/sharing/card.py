"""The card of what is shared: written from what was measured, and from nothing else."""

from collections.abc import Iterator, Sequence

import yaml

from episodica.classifier.exact_state import ExactState
from episodica.classifier.state import ModelState
from episodica.classifier.summaries import ability
from episodica.files.foreign_text import printable
from episodica.records.results import Mean, Results

MOST_CLASSES = 500  # in the table of a card
HOW = {"learned": "learned", "remembered": "from a few images", "unseen": "held out of training"}


def model_card(state: ModelState, repository: str, images: bool, licence: str | None) -> str:
    return "\n".join(
        [
            _head(["image-classification", "few-shot", "episodica"], licence, "image-classification"),
            f"# {repository.partition('/')[2]}",
            "",
            "A model that recognises the classes below in images and says when none of them fits, made with episodica.",
            "",
            "```sh",
            f"episodica classify hf://{repository} photo.jpg",
            f"episodica learn mine more/ --from hf://{repository}  # your own, which begins with its encoder",
            "```",
            "",
            "## What was measured",
            "",
            *(f"- {_text(sentence)}" for sentence in ability(state)),
            "",
            "Measured by whoever made the model on their own images; on yours it may be better or worse.",
            "",
            "## Classes",
            "",
            *_classes(state),
            "",
            "## Encoder",
            "",
            *_encoder(state),
            "",
            "## Not in here",
            "",
            f"- {'Images that were not kept.' if images else 'Images: none is part of this repository.'}",
            "- Classes that were forgotten: neither their names nor anything else that was kept of them"
            + ("." if state.exact else "; weights that had been trained on them stay as they were."),
            "",
        ]
    )


def run_card(results: Results, repository: str, licence: str | None) -> str:
    rows = [
        (str(row.session), str(row.classes_seen), _mean(row.meta_test), _mean(row.seen), _share(row.forgetting))
        for row in results.sessions
    ]
    shape = "{way}-way {shots}-shot".format(**results.shape)
    return "\n".join(
        [
            _head(["few-shot", "continual-learning", "episodica"], licence, None),
            f"# {repository.partition('/')[2]}",
            "",
            f"{results.method} with {results.learner} and {results.backbone} on {results.dataset}: "
            f"{results.tasks} tasks, {shape}, seed {results.seed}, run `{results.run}`, split `{results.split_hash}`.",
            *([f"**This run was shortened to {results.scale:g} of its schedule.**"] if results.scale < 1 else []),
            *([f"**{_text(results.warning)}**"] if results.warning else []),
            "",
            "Accuracy in % with its 95 % interval over episodes:",
            "",
            *_table(("session", "classes seen", "unseen classes", "seen classes", "forgetting"), rows),
            "",
            "```python",
            "from episodica.classifier.sharing.pull import local_place",
            "from episodica import load_learner",
            "",
            f'learner = load_learner(local_place("hf://{repository}"))',
            "```",
            "",
        ]
    )


def _head(tags: Sequence[str], licence: str | None, task: str | None) -> str:
    head = {"library_name": "episodica", "tags": list(tags)}
    head |= {"pipeline_tag": task} if task else {}
    head |= {"license": licence} if licence else {}
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n"


def _classes(state: ModelState) -> Iterator[str]:
    shown = state.classes[:MOST_CLASSES]
    rows = [(_text(c.name), HOW[c.kind], str(state.images_of(c))) for c in shown]
    yield from _table(("class", "how", "images"), rows)
    if len(state.classes) > MOST_CLASSES:
        yield f"\nand {len(state.classes) - MOST_CLASSES} more."


def _encoder(state: ModelState) -> Iterator[str]:
    backbone, size = state.config.backbone.declared(), state.config.image_size
    yield f"`{state.config.backbone.name}` on images of {size} x {size} pixels."
    if isinstance(state, ExactState):
        encoder = state.record.encoder
        trained = f"trained on {backbone.trained_on} and " if backbone.trained_on else ""
        yield f"It was {trained}left as it was. Its weights come from {_text(encoder.origin)}, whose licence applies"
        where = "in this repository" if encoder.included else "not in this repository: get them from there"
        yield f"to them; they are {where} (digest `{encoder.digest}`)."
        if state.has_adapter:
            yield "An adapter over its embeddings was trained on the maker's images."
    else:
        yield f"It was trained on the maker's images{' from pretrained weights' if backbone.pretrained else ''}."


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(line)} |"


def _text(text: str) -> str:
    """Names and sentences from outside, as text in Markdown and HTML."""
    return "".join(f"&#{ord(c)};" if c in "<>&|`[]*_\\#!" else c for c in printable(text))


def _mean(value: Mean) -> str:
    return f"{100 * value.mean:.1f} ± {100 * value.ci95:.1f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
