"""``budgetreg study``: the commands of a study, their files and their messages."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.cli.app import main
from tests.commands import Call

pytestmark = pytest.mark.usefixtures("short_chains")

TABLE = "patient,ward,age,ecg,outcome\np1,A,31,,1.5\np2,B,44,2.5,\np3,A,50,,3\n"
PRICES = "attribute,cost,group\nage,0,\necg,10,\niron,20,blood\nzinc,,blood\n"
CREATE = "study create trial.db table=patients.csv target=outcome id=patient costs=prices.csv unit=EUR drop=[ward]"
OTHER = CREATE.replace("trial", "other")


@pytest.fixture(autouse=True)
def here(here: Path) -> Path:
    (here / "patients.csv").write_text(TABLE)
    (here / "prices.csv").write_text(PRICES)
    return here


def filled(order: Path, value: str, lines: slice = slice(None)) -> None:
    """Write a value into the last column of some lines of an order."""
    header, *rows = order.read_text().splitlines()
    rows[lines] = [row + value for row in rows[lines]]
    order.write_text("\n".join([header, *rows]) + "\n")


@pytest.mark.usefixtures("sketched")
def test_a_study_on_the_command_line(here: Path, call: Call) -> None:
    size = "trial.db: 3 examples, 2 of them with the target outcome; 4 attributes; 4 of 12 values known\n"
    assert call(CREATE).out == size
    assert call(CREATE).out == size  # the same again
    order = call("study ask trial.db spend=30 order=1")
    assert order.out.startswith("order,example,attribute,cost,value\n1,p")
    assert order.err.startswith("budgetreg: order 1: ")
    assert call("study ask trial.db spend=30 order=1 out=order-1.csv").out.startswith("order 1: ")
    assert (here / "order-1.csv").read_text() == order.out
    filled(here / "order-1.csv", "5")
    assert "values recorded\npaid: 30 EUR, 30 EUR in all\n" in call("study tell trial.db order-1.csv").out
    assert "0 values recorded" in call("study tell trial.db order-1.csv").out
    call("study ask trial.db spend=500 out=order-2.csv")
    answer = call("study show trial.db")
    shown = answer.out
    assert "no estimate of the error: at least 10 examples" in answer.err
    assert "trial.png" in shown
    assert "30 EUR spent, 30 on order" in (here / "trial.txt").read_text()
    assert "paid: 30 EUR, and 30 EUR for what is on order" in shown
    assert "pending values released" in call("study cancel trial.db order=2").out
    (here / "more.csv").write_text("patient,outcome,zinc\np2,2,\np4,,7\n")
    assert "1 example, 1 target, 1 value added" in call("study add trial.db more.csv").out
    call("study export trial.db out=table.csv")
    table = (here / "table.csv").read_text().splitlines()
    assert table[0] == "patient,age,ecg,iron,zinc,outcome"
    assert table[4] == "p4,,,,7,"
    bill = budgetreg.Study("trial.db").bill()
    assert (bill.total, bill.on_order) == (30, 0)


@pytest.mark.usefixtures("sketched")
def test_prices_exclusions_and_the_log(here: Path, call: Call) -> None:
    call(CREATE)
    (here / "new.csv").write_text("attribute,cost\necg,12\nbmi,3\n")
    size = "trial.db: 3 examples, 2 of them with the target outcome; 5 attributes; 4 of 15 values known"
    assert call("study add trial.db costs=new.csv").out == f"new.csv: 1 new price, 1 attribute added: 'bmi'\n{size}\n"
    assert call("study add trial.db costs=new.csv").out == f"new.csv: 0 new prices added\n{size}\n"
    assert call("study add trial.db patients.csv drop=[ward] costs=new.csv").out.startswith("patients.csv: 0 ")
    (here / "other.csv").write_text("patient,outcome\np1,9\n")
    again = call("study add trial.db other.csv replace=true").out
    assert again.startswith("other.csv: 0 examples added, 1 replaced\n")
    (here / "wide.csv").write_text("patient;ecg;bmi\np1;1,5;20,5\n")
    told = call("study tell trial.db wide.csv decimal=,").out
    assert told == "wide.csv: 2 values recorded, 2 of them not on order\npaid: 15 EUR, 15 EUR in all\n"
    (here / "bill.csv").write_text("patient,attribute,value,cost\np1,ecg,1.5,11\n")
    told = call("study tell trial.db bill.csv replace=true").out
    assert told.endswith("1 at the price on the invoice, 1 known already\npaid: -1 EUR, 14 EUR in all\n")
    call("study ask trial.db spend=1000")
    out = call("study exclude trial.db attribute=[iron,zinc,iron]").out
    assert out == "2 attributes excluded, 4 pending values released\npaid: 14 EUR, and 15 EUR for what is on order\n"
    assert call("study exclude trial.db example=p1 refund=true").out.startswith("1 example excluded, 0 pending")
    assert call("study exclude trial.db example=p1 undo=true").out.startswith("1 example can be ordered again\n")
    assert call("study export trial.db log=true out=log.csv").out == "log.csv\n"
    events = [line.split(",") for line in (here / "log.csv").read_text().splitlines()[1:]]
    recorded = "price attribute target tell tell invoice ask exclude exclude exclude refund refund include"
    assert [event[1] for event in events] == recorded.split()
    assert sum(float(event[-1] or 0) for event in events) == budgetreg.Study("trial.db").bill().total == 0
    assert "iron (excluded)" in call("study show trial.db out=figures").out


def test_a_table_of_targets_alone_needs_a_price_list(here: Path, call: Call) -> None:
    (here / "known.csv").write_text("patient,outcome\np1,1\np2,2\n")
    said = call("study create new.db table=known.csv id=patient target=outcome", code=2)
    assert "known.csv has 0 attribute(s), but two are needed" in said.err


def test_the_advice_to_leave_out_a_column_can_be_typed(here: Path, call: Call) -> None:
    call(CREATE)
    (here / "wide.csv").write_text('patient,ecg,"ward, floor",age at test\np1,1,A,3\n')
    said = call("study tell trial.db wide.csv", 3).err
    assert """'drop=["ward, floor",age at test]'""" in said
    assert main(["study", "tell", "trial.db", "wide.csv", *shlex.split(said.partition("leave it out with ")[2])]) == 0


def test_a_table_of_names_alone(here: Path, call: Call) -> None:
    (here / "names.csv").write_text("patient\np1\np2\n")
    said = call("study create names.db table=names.csv id=patient costs=prices.csv")
    assert "2 examples, 0 of them with the target target; 4 attributes; 0 of 8 values known" in said.out
    assert "the column 'target' of names.csv is missing or empty: budgetreg study add records targets" in said.err
    assert said.err.count("\n") == 1
    (here / "targets.csv").write_text("patient,target\np2,1.5\n")
    assert "1 target added" in call("study add names.db targets.csv").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("study", 2, "study: a part is needed: create, add, ask, tell"),
        ("study tel", 2, "study tel: no such part (did you mean 'tell'?); parts: create, "),
        ("study ask trial.db", 2, "study ask: spend=VALUE is needed: the most that the order may cost"),
        ("study ask trial.db spnd=3", 2, "spnd=3: study ask has no such key (did you mean 'spend'?); keys: spend, "),
        ("study ask trial.db spend=", 2, "a value is needed: spend=VALUE"),
        ("study ask trial.db spend=1 spend=2", 2, "spend is there already, as spend=1"),
        ("study ask trial.db spend=much", 2, "spend=much: must be a number of at least 0"),
        ("study ask trial.db spend=9", 2, "nothing that is left costs less than 10 EUR"),
        ("study ask trial.db spend=30 per_example=0", 2, "per_example=0: must be a whole number of at least 1"),
        ("study tell trial.db", 2, "are required: RESULTS (see budgetreg study tell --help)"),
        ("study tell trial.db patients.csv replace=yes", 2, "replace=yes: must be true or false"),
        ("study tell trial.db trial.db", 2, "columns have names in .csv, .tsv, .parquet"),
        ("study tell trial.db patients.csv refund=true invoiced=true", 2, "refund=true gives that back: choose one"),
        ("study exclude trial.db", 2, "name examples or attributes: example=NAME or attribute=NAME"),
        ("study exclude trial.db example=p1 attribute=ecg", 2, "example= and attribute= are excluded by two commands"),
        ("study exclude trial.db attribute=ECG", 2, "the study has no attribute 'ECG' (did you mean 'ecg'?)"),
        ("study exclude trial.db example=[p1,p33]", 2, "the study has no example 'p33' (did you mean 'p3'?)"),
        ("study exclude trial.db example=p1 undo=true refund=true", 2, "refund=true gives charges back: choose one"),
        ("study add trial.db", 2, "study add: a table of examples or costs=FILE is needed"),
        ("study add trial.db cost=prices.csv", 2, "cost=prices.csv: study add has no such key (did you mean 'costs'?)"),
        ("study add trial.db costs=patients.csv", 3, "patients.csv: line 1: there is no column 'attribute'; columns:"),
        ("study export trial.db log=yes out=log.csv", 2, "log=yes: must be true or false"),
        ("study show patients.csv", 3, "patients.csv is not a study"),
        ("study export trial.db out=table.txt", 2, "out=table.txt: must end in .csv, for a table, or in .npz"),
        (OTHER.replace("id=patient", "id=patent"), 3, "no column 'patent' (did you mean"),
        (OTHER.replace("outcome", "outcom"), 3, "no column 'outcom' (did you mean"),
        (
            OTHER.replace("patients.csv", "p.parquet"),
            3,
            "p.parquet: there is no column 'ward'; columns: age, outcome",
        ),
        (OTHER.replace(" drop=[ward]", ""), 3, "column 'ward' is not numbers (line 2: 'A' is"),
        (CREATE + " seed=1", 2, "trial.db exists already"),
        (OTHER.replace("id=patient", ""), 3, "; if it has the examples' names: id=patient"),
        ("study predict trial.db words.csv", 3, "'high' is not a number): write numbers, and leave cells empty"),
    ],
)
def test_mistakes_are_one_line(here: Path, call: Call, words: str, code: int, said: str) -> None:
    call(CREATE)
    (here / "words.csv").write_text("patient,age\np9,high\n")
    pd.DataFrame({"age": [1.0], "outcome": [2.0]}).to_parquet(here / "p.parquet")
    before = (here / "trial.db").read_bytes()
    answer = call(words, code)
    assert (answer.out, answer.err.count("\n")) == ("", 1)
    assert said in answer.err
    assert (here / "trial.db").read_bytes() == before


def test_an_order_that_cannot_be_written_is_not_lost(call: Call) -> None:
    call(CREATE)
    answer = call("study ask trial.db spend=30 out=nowhere/order.csv", 2)
    assert answer.err.startswith("budgetreg: cannot write ")
    assert "; order 1 is recorded: the same command with order=1 and another out= writes it\n" in answer.err
    assert call("study ask trial.db spend=30 order=1 out=order.csv").out.startswith("order 1: ")


def test_free_values_are_not_ordered_alone(here: Path, call: Call) -> None:
    (here / "new.csv").write_text("patient,age,outcome\np1,,1\n")
    call(CREATE.replace("patients.csv", "new.csv").replace(" drop=[ward]", ""))
    refused = call("study ask trial.db spend=9", 2).err
    assert "spend=9: nothing that is left and has a price costs less than 10 EUR; values that cost nothing" in refused


def test_a_dry_run_compares_and_records_nothing(here: Path, call: Call) -> None:
    call(CREATE)
    before = (here / "trial.db").read_bytes()
    printed = call("study ask trial.db spend=30 dry_run=true").out
    assert printed.startswith("nothing is recorded; this would be order 1: ")
    said = call("study ask trial.db spend=30 dry_run=true out=order.csv", 2).err
    assert "dry_run=true records and writes nothing: leave out out=" in said
    assert (here / "trial.db").read_bytes() == before
    order = call("study ask trial.db spend=30").err
    assert order.removeprefix("budgetreg: ") == printed.removeprefix("nothing is recorded; this would be ")


def test_nothing_to_measure_is_reported(here: Path, call: Call) -> None:
    call(CREATE)
    (here / "new.csv").write_text("patient,ecg\nn1,2\n")
    answer = call("study next trial.db new.csv spend=0")
    assert answer.out == "patient,attribute,cost,std_before,std_after,for_all\n"
    assert answer.err == (
        "budgetreg: new.csv: no measurement for at most 0 EUR lowers the standard deviation of a prediction\n"
    )


@pytest.mark.filterwarnings("default::budgetreg.common.notices.Notice")
def test_predictions_and_what_to_measure_next(here: Path, call: Call) -> None:
    call(CREATE)
    (here / "results.csv").write_text("example,attribute,value\np1,ecg,1\np3,ecg,4\np1,iron,2\np2,iron,1\np3,zinc,2\n")
    call("study tell trial.db results.csv")
    (here / "new.csv").write_text("patient,ward,ecg\nn1,A,2\nn2,B,\n")
    lines = call("study predict trial.db new.csv").out.splitlines()
    assert lines[0] == "patient,prediction,std"
    assert [line.split(",")[0] for line in lines[1:]] == ["n1", "n2"]
    call("study predict trial.db new.csv out=predictions.csv")
    assert (here / "predictions.csv").read_text().splitlines() == lines
    assert call("study next trial.db new.csv spend=30").out.startswith(
        "patient,attribute,cost,std_before,std_after,for_all\n"
    )
    call("study export trial.db out=model.npz")
    (here / "typo.csv").write_text("patient,ward,ECG,zink,iron\nn1,A,2,3,4\n")
    for part in ("predict", "next"):
        assert call(f"study {part} trial.db typo.csv").err.startswith(
            "budgetreg: typo.csv: its column 'ECG' is not used (did you mean 'ecg'?)\n"
            "budgetreg: typo.csv: its column 'zink' is not used (did you mean 'zinc'?)\n"
        )
    (here / "whole.csv").write_text("patient,ecg,zinc,iron,age\nn1,1,2,3,40\n")
    assert call("predict model.npz whole.csv").out.startswith("prediction\n")
    assert "repetition=1: model.npz holds one model" in call("predict model.npz whole.csv repetition=1", 2).err


@pytest.mark.usefixtures("sketched")
@pytest.mark.slow
def test_how_good_the_model_is(here: Path, call: Call) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    rows = [f"p{at},{a:.3f},,,{2 * a + b:.3f}" for at, (a, b, _) in enumerate(X)]
    (here / "many.csv").write_text("\n".join(["patient,a,b,c,outcome", *rows]) + "\n")
    call("study create many.db table=many.csv target=outcome id=patient")
    lines = [f"p{at},{name},{X[at, 'abc'.index(name)]}" for at in range(40) for name in "bc"[at % 2 :]]
    (here / "results.csv").write_text("\n".join(["example,attribute,value", *lines]) + "\n")
    call("study tell many.db results.csv")
    shown = call("study show many.db out=figures").out
    assert shown.startswith("error relative to that of the mean target")
    assert "all attributes of a new example are measured" in shown.partition("\npaid: 60 attributes\nmany.db: ")[0]
    assert "all are measured, after 20 attributes more" in shown  # which is all that is left
    error = budgetreg.Study("many.db").error().complete
    interval = f"{error.estimate:.3f} (90 % interval {error.low:.3f} to {error.high:.3f})"
    assert f"60 attributes: error {interval}" in (here / "figures" / "many.txt").read_text()
    assert sorted(path.name for path in (here / "figures").iterdir()) == ["many.pdf", "many.png", "many.txt"]
    assert call("study show many.db out=figures").out == shown
