"""``budgetreg report``: what the page of each kind of results holds, where it lies, and which mistakes it refuses."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import budgetreg
from budgetreg.cli.app import main
from budgetreg.runs.tables import JOURNAL
from tests.commands import Call, one_line
from tests.report.conftest import ODD, QUICK, make_study
from tests.written_runs import edit_manifest, edit_table

pytestmark = pytest.mark.usefixtures("short_chains")

ROOT = Path(__file__).parents[2]
Report = Callable[..., Element]


@pytest.fixture
def report(call: Call, tmp_path: Path, sketched: None) -> Report:
    """Return a function that writes the page of some places, and parses it."""

    def written(*places: Path) -> Element:
        page = tmp_path / "page.html"
        assert call(f"report {' '.join(map(str, places))} --out {page}").out.strip().endswith("page.html")
        tree: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page.read_bytes())
        return tree

    return written


def refused(call: Call, *words: object, code: int = 3) -> str:
    return one_line(call(f"report {' '.join(map(str, words))}", code).err)


def texts(tree: Element, name: str) -> list[str]:
    return [" ".join("".join(element.itertext()).split()) for element in tree.iter(name)]


def rows(tree: Element, caption: str) -> list[list[str]]:
    """Return the rows of the table with a caption, by its beginning."""
    (table,) = (
        each for each in tree.iter("table") if texts(each, "caption")[0].casefold().startswith(caption.casefold())
    )
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_a_run_shows_its_error_bill_and_provenance(results: Path, report: Report) -> None:
    page = report(results / "run")
    assert texts(page, "h1") == ["Test error of aelr on digits_3v5, k = 4"]
    assert texts(page, "h2") == ["Test error", "Errors at the checkpoints", "What was paid", "Settings and provenance"]
    curve = budgetreg.load(results / "run").curves
    last = curve[curve["examples"] == curve["examples"].max()]
    assert f"{last['test_relative'].mean():.3g}" in " ".join(texts(page, "p"))
    assert len(rows(page, "aelr on digits_3v5")) == 1 + curve["examples"].nunique()
    bought = int(budgetreg.load(results / "run").runs["attributes_total"].mean())
    assert rows(page, "Paid by a repetition")[1] == ["aelr", "2", f"{bought:,}", "0", "0", "0", f"{bought:,}", "2,304"]
    manifest = json.loads((results / "run" / "manifest.json").read_text())
    assert ["seed", "0"] in rows(page, "Configuration")
    assert ["numpy", manifest["versions"]["numpy"]] in rows(page, "What computed")
    assert ["commit", manifest["git"]["commit"] or "not recorded"] in rows(page, "What computed")
    assert manifest["tables"]["curves.csv"][:12] in rows(page, "SHA-256")[1]


def test_a_sweep_is_compared_as_the_commands_do(results: Path, report: Report, call: Call) -> None:
    page = report(results / "sweep")
    assert texts(page, "h1") == ["Comparison of 2 runs on digits_3v5"]
    out = call(f"plot {results / 'sweep'} --out {results / 'figure'}").out
    printed = [line.split() for line in out.splitlines()]
    for row in rows(page, "digits_3v5, at the last checkpoint")[1:]:
        assert " ".join(row).split() in printed
    assert [row[0] for row in rows(page, "Configuration of each")[1:]] == ["aelr", "naive"]
    (image,) = page.iter("img")
    assert "tables" in image.get("alt", "")


def test_a_recommendation_begins_with_its_verdict_and_has_a_bill(results: Path, report: Report) -> None:
    page = report(results / "advice")
    assert texts(page, "h1") == ["Recommended learner and k for 300 attributes of digits_3v5"]
    said = " ".join((results / "advice" / "advice.txt").read_text().split())
    _, verdict, *_ = texts(page, "p")
    assert verdict.startswith("With 300 attributes, ")
    assert " - ".join([verdict, *texts(page, "li")]) in said
    assert len(rows(page, "digits_3v5, 300 attributes")) == 5
    _, *paid = rows(page, "Paid by a repetition")
    assert all(re.fullmatch(r"[\d,]+", cell) for row in paid for cell in row[1:])


def test_a_recommendation_shows_what_stands_beside_the_learners_in_the_same_runs(
    tmp_path: Path, report: Report, call: Call
) -> None:
    """Boosting, on a table of one's own."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    path, place = tmp_path / "table.csv", tmp_path / "advice"
    pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] * X[:, 1]).to_csv(path, index=False)
    words = f"advise dataset=file dataset.path={path} total=120 k=2,all algo=naive,ridge repetitions=5"
    printed = call(f"{words} tuning=fixed tuning.B=2 backend=sequential out={place}").out
    printed = [line.split() for line in printed.splitlines()]
    page = report(place)
    _, *table = rows(page, "table, 120 attributes")
    assert [row[1] for row in table[2:]] == ["boosting", "boosting"]
    for row in table:
        assert " ".join(row).split() in printed
    assert any("boosting: scikit-learn's, outside this tool" in line for line in texts(page, "p"))
    edit_table(place / "advice.csv", error=lambda advice: advice["error"] + 0.001)  # of other runs
    assert {row[1] for row in rows(report(place), "table, 120 attributes")[1:]} == {"naive", "ridge"}


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("content", [b"\xff", b"k,learner\nall,ridge\n", b"learner,error\nridge,low\n"])
def test_a_damaged_table_of_a_recommendation_is_an_error(
    results: Path, tmp_path: Path, call: Call, content: bytes
) -> None:
    place = shutil.copytree(results / "advice", tmp_path / "advice")
    (place / "advice.csv").write_bytes(content)
    refused(call, place)
    assert not (place / "report.html").exists()


def test_settings_and_how_figures_were_made_are_at_the_end(results: Path, report: Report) -> None:
    page = report(results / "advice")
    *_, settings, made = page.iter("details")
    assert texts(settings, "caption")[0] == "Configuration that all share"
    assert any(line.startswith("data: ") for line in texts(made, "p"))
    (below,) = page.iter("figcaption")
    assert texts(below, "p")[1].startswith("Each point is a learner that ended at 300 attributes")


def test_a_study_shows_its_bill_and_every_name_as_it_is(results: Path, report: Report) -> None:
    page = report(results / "trial.db")
    assert not list(page.iter("script"))
    with budgetreg.Study(results / "trial.db") as study:
        bill, estimate = study.bill(), study.error().complete.estimate
    table = rows(page, "By attribute")
    assert table[0][-1] == "<EUR>"
    assert {row[0] for row in table[1:]} == {ODD, "weight"}
    assert sum(int(row[3]) for row in table[1:]) == bill.by_attribute["paid"].sum()
    _, error, paid, *_ = texts(page, "p")
    assert error.startswith(f"The estimated error for a new example is {estimate:.3f} of that of the mean target (")
    assert paid.startswith(f"Paid: {bill.total:g} <EUR>, and {bill.on_order:g} <EUR> for what is on order. 40 examples")


def test_a_model_from_all_rows_has_no_error(tmp_path: Path, report: Report) -> None:
    fitted = {key: value for key, value in QUICK.items() if key not in ("repetitions", "checkpoints")}
    budgetreg.fit({**fitted, "algo": "aelr", "out": str(tmp_path / "model")})
    page = report(tmp_path / "model")
    examples = budgetreg.load(tmp_path / "model").curves["examples"].max()
    assert f"aelr, k = 4, learned from {examples} of the 365 rows of digits_3v5." in texts(page, "p")
    assert texts(page, "h1") == ["Model of digits_3v5, learned from all rows"]
    assert not list(page.iter("img"))
    assert "No row was kept for a test, so that no error was estimated." in texts(page, "p")


def test_a_reproduced_figure_shows_every_claim(report: Report) -> None:
    folder = ROOT / "results" / "hazan_koren_2012" / "fig1"
    page = report(folder)
    claims = folder.joinpath("claims.csv").read_text().count("\n") - 1
    table = rows(page, "Claims, with the statistic")
    assert len(table) == 1 + claims
    assert {row[2].partition(":")[0] for row in table[1:]} <= {"holds", "fails", "undecided"}
    assert texts(page, "h1") == ["Reproduction of hazan_koren_2012/fig1"]
    needed = [row[3].rpartition(" ")[2] for row in rows(page, "Attributes seen in training until")[1:]]
    saved = folder.joinpath("savings.csv").read_text().splitlines()[1:]
    assert [float(text.replace(",", "")) for text in needed] == [round(float(line.split(",")[4])) for line in saved]
    assert len(list(page.iter("img"))) == len(list(folder.glob("curves*.png")))


def test_several_places_have_a_section_each_and_a_table_of_contents(results: Path, report: Report) -> None:
    page = report(results / "run", results / "trial.db")
    assert texts(page, "h1") == ["Report: run, trial.db"]
    assert texts(page, "h2") == ["Test error of aelr on digits_3v5, k = 4", "Study trial: estimated error and bill"]
    links = [link.get("href", "") for nav in page.iter("nav") for link in nav.iter("a")]
    assert links == [f"#{heading.get('id')}" for heading in page.iter("h2")]


def test_a_run_that_was_interrupted_is_shown_as_far_as_it_is(results: Path, tmp_path: Path, report: Report) -> None:
    folder = tmp_path / "run"
    shutil.copytree(results / "run", folder)
    edit_manifest(folder, repetitions=3)  # as a kill leaves it that comes before the third
    page = report(folder)
    (warning,) = (text for text in texts(page, "p") if text.startswith("Note:"))
    assert "the run is incomplete: 2 of 3 repetitions are finished. This page shows 2." in warning
    assert rows(page, "Runs that are not complete")[1][-1] == "repetition 2: interrupted: the same command resumes"


@pytest.mark.usefixtures("sketched")
def test_nothing_finished_is_an_error(results: Path, tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "run"
    shutil.copytree(results / "run", folder)
    edit_manifest(folder, tables={})
    (folder / JOURNAL).write_text("")
    (folder / "curves.csv").write_text((folder / "curves.csv").read_text().partition("\n")[0] + "\n")
    error = refused(call, folder)
    assert "nothing is finished yet (0 of 2 repetitions, and no table)" in error
    (folder / "curves.csv").unlink()
    assert refused(call, folder) == error
    other = tmp_path / "other"
    shutil.copytree(results / "run", other)
    page = tmp_path / "report.html"
    call(f"report {tmp_path}")
    assert "1 of 2 runs are not complete: 2 of 4 repetitions are finished. This page shows 2." in page.read_text()


@pytest.mark.slow
def test_equal_results_give_equal_bytes(results: Path, tmp_path: Path) -> None:
    again = tmp_path / "elsewhere" / "sweep"
    for algo in ("aelr", "naive"):
        budgetreg.run({**QUICK, "algo": algo, "n_jobs": 2, "backend": "loky", "out": str(again / algo)})
    pages = []
    for folder in (results / "sweep", again):
        assert main(["report", str(folder)]) == 0
        pages.append((folder / "report.html").read_bytes())
        (folder / "report.html").unlink()
    assert pages[0] == pages[1]
    assert str(tmp_path).encode() not in pages[1]


@pytest.mark.usefixtures("sketched")
def test_the_page_lies_where_it_is_looked_for(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_study(tmp_path / "mine.db")
    assert main(["report", "mine.db"]) == 0
    assert Path("mine.html").is_file()
    assert main(["report", "mine.db", str(results / "run")]) == 0
    first = Path("report.html").read_bytes()
    assert main(["report", str(results / "run"), "--out", "report.html"]) == 0  # a page may be replaced
    assert Path("report.html").read_bytes() != first
    assert sorted(os.listdir()) == ["mine.db", "mine.html", "report.html"]


@pytest.mark.usefixtures("sketched")
def test_mistakes_are_one_line(results: Path, tmp_path: Path, call: Call) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    run = results / "run"
    assert refused(call, tmp_path / "none") == f"budgetreg: {tmp_path}/none: no such folder or study\n"
    assert refused(call, table) == f"budgetreg: {table} is not a study: budgetreg study create makes one\n"
    for place in ("x" * 5000, "/dev/null", tmp_path):
        refused(call, place)
    assert "is there already, and would be replaced: choose another" in refused(call, run, "--out", table, code=2)
    assert table.read_text() == "a,b\n1,2\n"
    study = results / "trial.db"
    for place, page in ((study, study), (run, tmp_path), (run, tmp_path / "none" / "page.html")):
        refused(call, place, "--out", page, code=2)
    needed = "budgetreg: the following arguments are required: DIR (see budgetreg report --help)\n"
    assert refused(call, code=2) == needed


def test_damage_is_one_line(results: Path, tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "run"
    shutil.copytree(results / "run", folder)
    with (folder / "curves.csv").open("a") as file:
        file.write("more\n")
    assert "is damaged" in refused(call, folder)


def test_tests_look_only_at_what_predictions_see(tmp_path: Path, report: Report) -> None:
    for name, most in (("1", 1), ("all", None)):
        budgetreg.run({**QUICK, "algo": "naive", "predict_k": most, "out": str(tmp_path / "sweep" / name)})
    page = report(tmp_path / "sweep")
    assert [row[-1] for row in rows(page, "Paid by a repetition")[1:]] == ["36", "2,304"]
    assert any("with predict_k only at those that the last regressor uses" in text for text in texts(page, "p"))


def test_a_bill_is_in_money_if_there_are_prices(tmp_path: Path, report: Report) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("attribute,cost\n" + "".join(f"{name},2.5\n" for name in load_breast_cancer().feature_names))
    priced = {**QUICK, "algo": "aelr", "dataset": "breast_cancer", "dataset.unit": "EUR"}
    budgetreg.run({**priced, "dataset.costs": str(prices), "pilot": "auto", "out": str(tmp_path / "run")})
    head, row = rows(report(tmp_path / "run"), "Paid by a repetition, in attributes and EUR")
    paid = dict(zip(head, row, strict=True))
    money, attributes = (float(paid[name].replace(",", "")) for name in ("EUR: learning", "learning"))
    assert money == pytest.approx(2.5 * attributes, rel=1e-3)
    assert int(paid["pilot in it"]) % 30 == 0 < int(paid["pilot in it"])  # full rows, and no word
