"""The PNG: labels do not overlap, axes fit the data."""

import itertools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from matplotlib import pyplot

from jaxenc.errors import one_line
from jaxenc.reports import history, panels, picture
from tests.reports.runs import EVENTS_OF_A_KILL, make, metrics


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The figure of a run whose count baselines are close to each other."""
    numbers = metrics(rtd_loss=0.3, rtd_accuracy=0.87, rtd_auc=0.9)
    run = history.read(make(tmp_path_factory.mktemp("drawn") / "run", numbers, EVENTS_OF_A_KILL))
    counts = {"unigram": 3.90, "left": 3.86, "left_right": 3.84, "both": 3.84}
    with mock.patch.object(pyplot, "close") as closed:
        picture.picture([*panels.of_run(run, counts), panels.of_time(run)])
    (figure,) = closed.call_args.args
    yield figure
    pyplot.close(figure)


def test_no_two_texts_overlap(drawn: Any) -> None:
    """Titles, ticks, names of axes, legends and labels of levels, as they are drawn."""
    drawn.canvas.draw()  # the file was drawn with another resolution
    renderer = drawn.canvas.get_renderer()
    boxes = []
    for axis in drawn.axes:
        if not axis.axison:
            continue
        ticks = [label for which in (axis.xaxis, axis.yaxis) for label in which.get_ticklabels()]
        titles = [axis.title, axis._left_title, axis.xaxis.label]
        for text in (*ticks, *titles, *axis.texts, *axis.get_legend().texts):
            if text.get_text():
                boxes.append((f"{axis.get_title(loc='left')}: {text.get_text()}", text.get_window_extent(renderer)))
    assert len(boxes) > 100
    wide, high = drawn.canvas.get_width_height()
    assert [name for name, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > wide or box.y1 > high] == []
    assert [(a, b) for (a, one), (b, other) in itertools.combinations(boxes, 2) if one.overlaps(other)] == []


def test_levels_with_one_number_share_a_label(drawn: Any) -> None:
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts == ["unigram counts 3.90", "left counts 3.86", "left + right, both counts 3.84"]


def test_axes_fit_the_data(drawn: Any) -> None:
    axes = {axis.get_title(loc="left"): axis for axis in drawn.axes if axis.axison}
    assert {"learning rate", "tokens per second", "gradient norm", "steps over time"} <= set(axes)
    low, high = axes["accuracy"].get_ylim()
    assert 0.05 < low < 0.11 and 0.87 < high < 0.95
    assert axes["gradient norm"].get_yscale() == "log" and axes["accuracy"].get_yscale() == "linear"


@pytest.mark.parametrize("name", ["_hidden", "a$^$b", "\udcff", "नाम العربية", "a\n\x1b[31m"])
def test_any_name_of_a_run_is_in_the_legend(name: str) -> None:
    """A formula, a font without the letters or bytes that are no UTF-8 are no error, and a leading underscore hides nothing."""
    curves = tuple(panels.Curve(one, (1.0, 2.0), (1.0, 2.0), number) for number, one in enumerate((name, "other")))
    with mock.patch.object(pyplot, "close") as closed:
        picture.picture([panels.Panel("loss", "step", curves)])
    (figure,) = closed.call_args.args
    texts = [text.get_text() for text in figure.axes[0].get_legend().texts]
    pyplot.close(figure)
    assert texts == [one_line(name), "other"]
