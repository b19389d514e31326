"""The pages of results: findings, counts of verdicts, grids and tables of claims."""

from pathlib import Path

import pytest

from budgetreg.common.errors import ConfigError
from budgetreg.config import catalogue
from budgetreg.reproduce import gallery
from budgetreg.reproduce.gallery import pages_of, read_findings, tally, write_gallery

RESULTS = Path(__file__).resolve().parent.parent.parent / "results"


def row(claim: str, verdict: str, protocol: str = "", **rest: str) -> dict[str, str]:
    defaults = {"estimate": "0.1234", "interval_low": "0.1", "interval_high": "0.2", "wanted": "below 0"}
    told = {"says": f"it is {claim}", "note": "", "repetitions": "10"}
    return {"claim": claim, "verdict": verdict, "protocol": protocol, **defaults, **told, **rest}


GRID = {
    "id": "{row}_{column}",
    "says": "with {column} of d, A errs less than {row}, always",
    "kind": "below",
    "a": "a",
    "rows": {"b": "B", "c": "C on full rows"},
    "columns": {"k": [4, 8]},
    "by_column": {"from": [10, 20]},
}


def test_a_claim_counts_once_with_its_best_verdict_unless_presets_are_different_data() -> None:
    rows = [row("one", "fails", "literal"), row("one", "undecided", "paper"), row("two", "holds", "paper")]
    assert tally(rows) == {"undecided": 1, "holds": 1}
    assert tally([*rows, row("one", "holds", "late")]) == {"holds": 2}
    assert tally(rows, each_preset=True) == {"fails": 1, "undecided": 1, "holds": 1}


def test_a_grid_and_a_folded_table_show_every_claim_once() -> None:
    ids = ["b_4", "c_4", "b_8", "c_8"]
    rows = [row(name, verdict) for name, verdict in zip(ids, ["holds", "fails", "undecided", "holds"], strict=True)]
    rows += [row("end", "fails", wanted="at most 0.36", estimate="12345", note="left out: x_1", says="ends | early")]
    text = gallery.claims(rows, [GRID])
    assert "With *k* of d, A errs less than *learner*, always: of 4 claims, 2 hold, 1 is open, 1 fails." in text
    assert "| C on full rows | **fails** 0.123 | **holds** 0.123 |" in text
    assert "<summary>1 claim: 1 fails</summary>" in text
    assert "| ends \\| early (`end`) | at most 0.36 | **fails** 12,345 (0.1 to 0.2) left out: x\\_1 |" in text
    assert text.endswith("\nThe verdicts are based on 10 repetitions.\n\n")


def test_presets_are_columns() -> None:
    rows = [
        row("one", "holds", "literal"),
        row("one", "fails", "paper"),
        row("two", "undecided", "paper", estimate="", interval_low="", note="no curve of a"),
    ]
    table = gallery.claims(rows, [])
    assert "<summary>2 claims under 2 presets: 1 holds, 1 is open, 1 fails</summary>" in table
    assert "| claim | wanted | literal | paper |" in table
    assert (
        "| it is one (`one`) | below 0 | **holds** 0.123 (0.100 to 0.200) | **fails** 0.123 (0.100 to 0.200) |" in table
    )
    assert "| it is two (`two`) | below 0 |  | *open* no curve of a |" in table
    named = gallery.claims([row("one", "holds", "here_only"), row("two", "holds", "there")], [])
    assert "| claim | wanted | here |" in named


def test_findings_are_read_without_comments_and_their_mistakes_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "conf_dir", lambda: tmp_path)
    file = tmp_path / "experiment" / "paper" / "findings.toml"
    file.parent.mkdir(parents=True)
    file.write_text('title = "A & B"\nfound = "It is 0.5<!-- a.csv: b --> here."\n')
    findings = read_findings("paper")
    assert (findings.title, findings.ours, findings.found) == ("A & B", False, "It is 0.5 here.")
    assert read_findings("other").title == "other"
    for content, message in (
        ("tilte = 1", "did you mean 'title'"),
        ("title = ", "findings.toml"),
        ("place = 'x'", "a number"),
    ):
        file.write_text(content)
        with pytest.raises(ConfigError, match=message):
            read_findings("paper")


def test_a_picture_without_claims_has_a_page_with_its_caption(tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    for name, content in (("plot.png", ""), ("plot.txt", "plot: a title\n\nx: what_is *seen*\n\nall settings\n")):
        (tmp_path / "paper" / name).write_text(content)
    (tmp_path / "empty").mkdir()
    assert write_gallery(tmp_path) == tmp_path / "README.md"
    text = (tmp_path / "paper" / "README.md").read_text()
    assert "![plot: a title](plot.png)" in text
    assert "x: what\\_is \\*seen\\*" in text
    assert "all settings" not in text
    assert "[paper](paper/README.md)" in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "empty" / "README.md").exists()


@pytest.mark.skipif(not RESULTS.is_dir(), reason="a source distribution has no results")
def test_the_committed_pages_follow_from_the_committed_results() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in (RESULTS / "README.md", *RESULTS.glob("*/README.md"))}
    assert pages == pages_of(RESULTS)
