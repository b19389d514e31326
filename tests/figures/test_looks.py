"""Colours and widths of lines: full rows are black, and a learner that chooses k itself is heavy."""

from dataclasses import replace
from pathlib import Path

from budgetreg.config import catalogue
from budgetreg.figures.looks import COLOURS, called, is_heavy, looks_of, style, within_learner
from budgetreg.runs.series import read_series
from tests.written_runs import write_run


def test_variants_have_colours_of_their_own_and_full_rows_are_black(tmp_path: Path) -> None:
    for k in (2, 4, 6, 8):
        write_run(tmp_path / str(k), algo="aemr", k=k, d=8)
    looks = looks_of(read_series([tmp_path]))
    black = {label for label, look in looks.items() if look["color"] == COLOURS["black"]}
    assert black == {"aemr k=8"}
    assert len({look["color"] for look in looks.values()}) == 4
    assert not any(map(is_heavy, looks.values()))


def test_a_variant_that_chooses_k_has_the_look_of_its_learner(tmp_path: Path) -> None:
    for k in (2, 4):
        write_run(tmp_path / str(k), algo="aemr", k=k, d=8)
    two, four = read_series([tmp_path])
    looks = looks_of([two, replace(four, k="auto", label="aemr k=auto")])
    assert looks["aemr k=auto"]["color"] == style("aemr").colour
    assert [label for label, look in looks.items() if is_heavy(look)] == ["aemr k=auto"]


def test_labels_begin_with_the_names_of_learners(tmp_path: Path) -> None:
    (series,) = read_series([write_run(tmp_path, algo="impute_ridge")])
    labels = ["impute_ridge", "impute_ridge k=4", "impute_ridge, centred", "impute_ridges", "starting point"]
    shown = [called(replace(series, label=label)) for label in labels]
    name = "ridge on imputed values"
    assert [each.label for each in shown] == [name, f"{name} k=4", f"{name}, centred", *labels[3:]]
    assert [within_learner(each) for each in shown] == [name, "k=4", "centred", *labels[3:]]


def test_no_two_learners_share_colour_and_marker() -> None:
    names = catalogue.options("algo")
    assert len(set(map(style, names))) == len(names)
    figures = [
        "aer aerr aelr ddaerr ddaelr ddaerr_two_phase ddaelr_two_phase aesvr baseline naive aemr aeml ridge",
        "popca popca_passive popca_importance mbeg mbeg_plus pca oja grouse petrels prime_pca aefa aefa_streaming "
        "zero_filled_pca",
    ]
    for learners in map(str.split, figures):
        assert len({style(algo).colour for algo in learners}) == len(learners)


def test_our_learners_are_heavy_and_those_that_see_full_rows_are_black_or_dark_grey_if_online() -> None:
    styles = {algo: style(algo) for algo in catalogue.options("algo")}
    assert {algo for algo, each in styles.items() if each.heavy} == {
        "aemr",
        "aeml",
        "aefa",
        "aefa_streaming",
        "popca_importance",
        "mbeg_plus",
    }
    black = {algo for algo, each in styles.items() if each.colour == "#000000"}
    assert black == {"ridge", "lasso", "pca"}
    assert {style(algo).colour for algo in ("online_ridge", "online_lasso")} == {"#5F5F5F"}
    assert style("somebody's new one") == style("somebody's new one")
