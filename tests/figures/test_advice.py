"""The answer of `budgetreg advise` as a sentence, a table and a figure."""

import re

import numpy as np
import pytest

from budgetreg.analysis.comparisons import ranked
from budgetreg.figures.advice import advice_table, plot_advice, sentence
from tests.analysis.test_claims import falling, series
from tests.figures.test_summary import rows

FULL = {"core": "offline", "k": 16}


def curves(**levels):
    """Return candidates that end 0.01 above given errors; those named full_... see full rows."""
    candidates = [
        series(name, falling(level), shared=0, noise=0.001, **(FULL if name.startswith("full") else {}))
        for name, level in levels.items()
    ]
    for candidate in candidates:
        candidate.points["test_svr_loss"] = np.nan
    return ranked(candidates, "test_relative")


def said(total=4000, **levels):
    text = sentence(curves(**levels), total)
    assert text.count(".") == len(re.findall(r"\d\.\d", text)) + 1  # one sentence
    return text


def test_the_sentence_names_the_best_and_says_that_full_rows_do_worse():
    text = said(a=0.3, b=0.5, full_c=0.4)
    assert text.startswith(
        "With 4000 attributes the best is a with k = 4 on 1000 examples, error 0.31 (90 % interval 0.3"
    )
    assert re.search(r"; all others are worse; full rows do worse: full_c on 1000 full rows, 0\.0?99\d* \(90 % ", text)


def test_the_sentence_names_learners_that_may_be_as_good():
    text = said(a=0.3, b=0.3, full_c=0.3)
    assert "cannot be told from it; " in text
    assert re.search(r"(full rows|k attributes of each example) may do as well: ", text)


def test_full_rows_can_be_the_best():
    text = said(a=0.5, full_c=0.4, full_d=0.6)
    assert "the best is full_c on 1000 full rows" in text
    assert "k attributes of each example do worse: a with k = 4 on 1000 examples, 0.1" in text


def test_the_sentence_says_what_was_not_tried():
    assert said(a=0.3, b=0.4).endswith("full rows were not tried.")
    assert said(full_a=0.3).endswith("; k attributes of each example were not tried.")


def test_the_table_lists_the_best_first():
    first, second = rows(advice_table(curves(a=0.3, full_c=0.4), 4000))
    assert first[:4] == ["4", "a", "1000", "4000"]
    assert re.fullmatch(r"0\.31 \(0\.31 to 0\.31\d?\)", first[4])
    assert first[5:] == ["0", "100 %"]
    assert second[:4] == ["all", "full_c", "1000", "16000"]
    assert float(second[5].split()[0]) == pytest.approx(0.1, abs=0.001)


def test_the_figure_has_the_same_bytes_and_its_caption_gives_the_answer(tmp_path):
    candidates = curves(a=0.3, full_c=0.4)
    written = plot_advice(candidates, 4000, tmp_path / "one")
    again = plot_advice(candidates, 4000, tmp_path / "two")
    assert [path.name for path in written] == ["advice.png", "advice.pdf", "advice.txt"]
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    caption = " ".join(written[-1].read_text().split())
    assert sentence(candidates, 4000) in caption
    assert "What tuning looks at is not in the total" in caption
