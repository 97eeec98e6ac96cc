import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.errors import InputError
from episodica.tune.axis import Choice, Range, parse_axis


def test_a_range_of_numbers_takes_the_kind_of_the_field() -> None:
    assert parse_axis("train.lr=1e-4:1e-2:log") == Range("train.lr", 1e-4, 1e-2, log=True)
    share = parse_axis("method.p=0:1")
    assert isinstance(share, Range)
    assert (share.low, share.high) == (0.0, 1.0)
    assert share.continuous
    whole = parse_axis("memory.per_class=5:20:5")
    assert whole == Range("memory.per_class", 5, 20, step=5.0, whole=True)
    assert isinstance(whole, Range)
    assert not whole.continuous


def test_values_that_are_listed_are_choices() -> None:
    assert parse_axis("memory.select=ntc,rb") == Choice("memory.select", ("ntc", "rb"))
    assert parse_axis("method.sample=null,4") == Choice("method.sample", (None, 4))


@given(st.floats(1e-6, 1), st.floats(2, 1e6), st.booleans())
def test_what_an_axis_says_of_itself_is_the_same_axis(low: float, high: float, log: bool) -> None:
    axis = parse_axis(f"train.lr={low:g}:{high:g}{':log' if log else ''}")
    assert parse_axis(str(axis)) == axis


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("method.q=0:1", 'did you mean "method.p"'),
        ("method.p", "write KEY.PATH=LOW:HIGH"),
        ("method.p=1:0", "the smaller one"),
        ("method.p=0:1:log", "above 0 for log"),
        ("method.p=0:1:2", "fits into the range"),
        ("method.p=0:nan", "the smaller one"),
        ("method.p=low:high", "no range of numbers"),
        ("memory.per_class=1.5:3", "whole numbers"),
        ("memory.select=ntc", "two values or more"),
        ("memory.select=[ntc],rb", "two values or more"),
        ("stream.unseen_classes=2:9", "it decides what is asked"),
        ("eval.seed=0:9", "it decides what is asked"),
        ("seed=0:9", "nothing to choose"),
    ],
)
def test_what_is_no_axis_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_axis(text)


def test_numbers_at_equal_distances_become_steps() -> None:
    axis = Range("method.p", 0.0, 1.0)
    assert axis.in_steps([0.0, 0.2, 0.4]) == Range("method.p", 0.0, 0.4, step=0.2)
    assert axis.in_steps([0.0, 0.2, 0.6]) is None
    assert axis.in_steps([0.5]) is None
