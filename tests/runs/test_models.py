"""Models survive kills and damage, have the same bytes again, and predict other tables."""

import io
import json
import shutil

import numpy as np
import pytest

import budgetreg
from budgetreg.protocol.prediction import probability
from budgetreg.runs.models import packed, unpacked
from budgetreg.runs.store import Store
from tests.commands import one_line
from tests.damage import flip
from tests.toy_runs import toy_entry, toy_plan

NAMES = ("old", "tall", "rich")
LEARNED = [
    {"w": np.array([1.0, 2 / 3, -3.0]), "b": np.array(10.0 + r), "c": np.array([0.0, 100.0, r])} for r in range(3)
]
X = np.array([[1.0, 120.0, 4.0], [2.0, 80.0, 5.0], [0.0, 100.0, 0.1], [7.0, 90.0, 0.0]])
Y = np.array([3.0, 4.0, 5.0, 7.0])


def entry(repetition, learned=LEARNED):
    toy = toy_entry(repetition)
    return {**toy, "result": {**toy["result"], "model": learned[repetition]}}


def fill(folder, repetitions=(0, 1, 2), asked=3, learned=LEARNED, **facts):
    """Compute those of some repetitions that are missing, and return them."""
    with Store.open(folder, toy_plan(folder, repetitions=asked, d=3, **facts)) as store:
        missing = [number for number in store.missing() if number in repetitions]
        for repetition in missing:
            store.add(entry(repetition, learned))
        store.finish()
        return missing


def expected(X, repetitions=(0, 1, 2)):
    predictions = [LEARNED[r]["b"] + (X - LEARNED[r]["c"]) @ LEARNED[r]["w"] for r in repetitions]
    return np.mean(predictions, axis=0)


@pytest.fixture
def run(tmp_path):
    fill(tmp_path / "run", names=NAMES, target="y")
    return tmp_path / "run"


def table(path, columns):
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def predict(call, *words, code=0):
    return call(f"predict {' '.join(map(str, words))}", code)


def numbers(out):
    head, *lines = out.splitlines()
    assert head == "prediction"
    return [float(line) for line in lines]


def test_the_file_holds_the_models_in_the_order_of_the_repetitions(tmp_path):
    fill(tmp_path, [2], names=NAMES, target="y")
    fill(tmp_path, [0, 1], names=NAMES, target="y")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        arrays = dict(file)
    assert arrays["repetitions"].tolist() == [0, 1, 2]
    assert (arrays["names"].tolist(), str(arrays["target"])) == (list(NAMES), "y")
    for name in ("w", "b", "c"):
        np.testing.assert_array_equal(arrays[name], np.stack([model[name] for model in LEARNED]))
    assert arrays.keys() <= json.loads((tmp_path / "manifest.json").read_text())["arrays"].keys()


def test_models_keep_every_bit():
    arrays = {"w": np.array([0.1, -1e-310, np.pi]), "b": np.array(2 / 3), "c": np.zeros(3), "V": np.eye(3)[:, :2]}
    there_and_back = unpacked(json.loads(json.dumps(packed(arrays))))
    for name, array in arrays.items():
        assert there_and_back[name].shape == array.shape
        assert there_and_back[name].tobytes() == np.ascontiguousarray(array).tobytes()


def test_the_same_models_have_the_same_bytes(tmp_path, run):
    fill(tmp_path / "other", [1], names=NAMES, target="y")
    fill(tmp_path / "other", [0, 2], names=NAMES, target="y")
    assert (tmp_path / "other" / "model.npz").read_bytes() == (run / "model.npz").read_bytes()


@pytest.mark.parametrize("kept", range(4))
def test_a_run_killed_between_model_and_journal_computes_the_repetition_again(tmp_path, run, kept):
    """Some of three repetitions are in the journal; the models of all are there, the last cut short."""
    cut = tmp_path / "cut"
    shutil.copytree(run, cut)
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "journal.jsonl").write_bytes(b"".join(lines[:kept]))
    models = (run / "models.jsonl").read_bytes()
    (cut / "models.jsonl").write_bytes(models[:-9] if kept < 3 else models)
    for name in ("curves.csv", "runs.csv", "model.npz"):
        (cut / name).unlink()
    fill(cut, names=NAMES, target="y")
    assert (cut / "model.npz").read_bytes() == (run / "model.npz").read_bytes()


def test_damaged_models_are_reported_and_computed_again(run, call):
    whole = (run / "model.npz").read_bytes()
    lines = (run / "models.jsonl").read_bytes().splitlines(keepends=True)
    (run / "models.jsonl").write_bytes(lines[0] + lines[1].replace(b"3", b"4", 1) + lines[2])
    assert "models.jsonl is damaged" in call(f"status {run}", 3).err
    assert fill(run, names=NAMES, target="y") == [1]
    assert (run / "model.npz").read_bytes() == whole
    (run / "models.jsonl").unlink()
    assert fill(run, names=NAMES, target="y") == [0, 1, 2]
    rng = np.random.default_rng(0)
    for _ in range(5):
        flip(run / "model.npz", rng)
        answer = predict(call, run, run, code=3)
        assert (answer.out, answer.err.count("\n")) == ("", 1)
        assert "model.npz is damaged" in answer.err
        assert fill(run, names=NAMES, target="y") == []
        assert (run / "model.npz").read_bytes() == whole


def test_columns_are_matched_by_name_without_the_target(tmp_path, run, call):
    shuffled = {"rich": X[:, 2], "y": Y, "id": [4, 3, 2, 1], "old": X[:, 0], "tall": X[:, 1]}
    answer = predict(call, run, table(tmp_path / "new.csv", shuffled))
    np.testing.assert_allclose(numbers(answer.out), expected(X), rtol=1e-12)
    assert answer.err.splitlines() == [
        "budgetreg: the mean of 3 models, each bought on a split of its own: 360 attributes were paid for in all; "
        "`budgetreg fit` learns one",
        f"budgetreg: mean squared error {np.square(expected(X) - Y).mean():.6g} on the 4 rows of {tmp_path}/new.csv; "
        "whether any of them was learned from is not known",
    ]
    del shuffled["y"]
    answer = predict(call, run, table(tmp_path / "new.csv", shuffled), "repetition=1")
    np.testing.assert_allclose(numbers(answer.out), expected(X, [1]), rtol=1e-12)
    assert answer.err == "budgetreg: the model of repetition 1, one of 3: 120 attributes were paid for\n"


@pytest.mark.parametrize("failed", [0, 1])
def test_a_repetition_is_found_by_its_number_if_another_failed(tmp_path, call, failed):
    folder, others = tmp_path / "run", [number for number in range(3) if number != failed]
    with Store.open(folder, toy_plan(folder, names=NAMES, d=3)) as store:
        for number in others:
            store.add(entry(number))
        store.add({"repetition": failed, "status": "failed", "seconds": 0.5, "message": "no such luck"})
        store.finish()
    examples = table(tmp_path / "new.csv", dict(zip(NAMES, X.T, strict=True)))
    for number in others:
        out = predict(call, folder, examples, f"repetition={number}").out
        np.testing.assert_allclose(numbers(out), expected(X, [number]), rtol=1e-12)
    answer = predict(call, folder, examples, f"repetition={failed}", code=2)
    assert answer.out == ""
    assert f"repetition={failed}: " in answer.err


def test_columns_without_names_are_matched_by_their_order(tmp_path, run, call):
    np.savez(tmp_path / "new.npz", X=X, y=Y)
    answer = predict(call, run, tmp_path / "new.npz", f"out={tmp_path / 'p.csv'}")
    assert answer.out == f"{tmp_path / 'p.csv'}\n"
    np.testing.assert_allclose(numbers((tmp_path / "p.csv").read_text()), expected(X), rtol=1e-12)
    assert "on the 4 rows of" in answer.err
    np.savez(tmp_path / "new.npz", X=X)
    assert numbers(predict(call, run, tmp_path / "new.npz", "repetition=all").out) == pytest.approx(expected(X))
    nameless = tmp_path / "nameless"
    fill(nameless, target="y")
    other = table(tmp_path / "new.csv", {"u": X[:, 0], "y": Y, "v": X[:, 1], "w": X[:, 2]})
    assert numbers(predict(call, nameless, other).out) == pytest.approx(expected(X))
    (tmp_path / "new.libsvm").write_text("1 1:2 2:120 3:4\n3 2:1 3:1\n")
    assert numbers(predict(call, run, tmp_path / "new.libsvm").out) == pytest.approx(
        expected(np.array([[2.0, 120, 4], [0, 1, 1]]))
    )


def test_columns_are_matched_by_the_indices_of_the_libsvm_file_that_was_learned_from(tmp_path, call):
    """Where all of them are names; the order decides otherwise."""
    folder, X = tmp_path / "indexed", np.arange(20.0).reshape(5, 4)[:, :3] ** 2 % 7
    y = ["1", "-1", "2", "0", "1"]
    rows = [" ".join([y[t], *(f"{i}:{x}" for i, x in zip((1, 2, 3), X[t], strict=True))]) for t in range(5)]
    path = tmp_path / "indexed.libsvm"
    path.write_text("\n".join(rows * 4) + "\n")
    budgetreg.fit({"dataset": "file", "dataset.path": str(path), "algo": "ridge", "total": 60, "tuning": "fixed",
                   "tuning.B": 9.0, "k": 2, "out": str(folder)})  # fmt: skip
    right = numbers(predict(call, folder, path).out)[:5]
    for names in (("1", "2", "3"), ("3", "2", "1"), ("u", "v", "w")):
        columns = dict(zip(("1", "2", "3"), X.T, strict=True))
        by_name = {name: columns[name] for name in names} if "1" in names else dict(zip(names, X.T, strict=True))
        new = table(tmp_path / "new.csv", {**by_name, "target": np.zeros(5)})
        assert numbers(predict(call, folder, new).out) == pytest.approx(right)


def test_two_different_numbers_are_numbers_when_numbers_were_learned(tmp_path, run, call):
    targets = np.array([10.0, -2.5, 10.0, 10.0])
    numeric = table(tmp_path / "new.csv", {**dict(zip(NAMES, X.T, strict=True)), "y": targets})
    err = predict(call, run, numeric).err
    assert f"mean squared error {np.square(expected(X) - targets).mean():.6g} on the 4 rows" in err
    assert "-> -1" not in err  # which is how labels would be read


def test_no_error_is_computed_for_labels_when_numbers_were_learned(tmp_path, run, call):
    labels = table(tmp_path / "new.csv", {**dict(zip(NAMES, X.T, strict=True)), "y": ["a", "b", "a", "b"]})
    answer = predict(call, run, labels)
    assert numbers(answer.out) == pytest.approx(expected(X))
    said = "budgetreg: the table has two labels but the run learned no labels: no error is computed"
    assert answer.err.splitlines()[-1] == said


SURE = [model | {"share": np.array(0.25), "explained": np.array(0.5)} for model in LEARNED]


def test_two_labels_have_probabilities(tmp_path, call):
    """The mean of the models' probabilities, that label whose probability is larger, and errors by labels."""
    run = tmp_path / "run"
    fill(run, names=NAMES, target="y", labels=("no", "yes"), learned=SURE)
    words = ["no", "no", "yes", "yes"]
    rows = np.array([[0.0, 100.0, 5.0], [0.0, 100.0, 3.0], [0.0, 100.0, 14 / 3], [0.5, 99.0, 6.0]])
    new = table(tmp_path / "new.csv", {**dict(zip(NAMES, rows.T, strict=True)), "y": words})
    answer = predict(call, run, new)
    head, *lines = (line.split(",") for line in answer.out.splitlines())
    assert head == ["prediction", "probability", "label"]
    scores = [model["b"] + (rows - model["c"]) @ model["w"] for model in LEARNED]
    p = np.mean([probability(each, 0.25, 0.5) for each in scores], axis=0)
    assert [float(line[0]) for line in lines] == pytest.approx(expected(rows))
    assert [float(line[1]) for line in lines] == pytest.approx(p)
    labels = ["yes" if each > 0.5 else "no" for each in p]
    assert [line[2] for line in lines] == labels
    assert sorted(set(labels)) == ["no", "yes"]
    wrong = np.mean([a != b for a, b in zip(labels, words, strict=True)])
    assert f"error rate {wrong:.4g} on the 4 rows of" in answer.err
    assert "probability: of 'yes', by Bayes' rule" in answer.err
    one = predict(call, run, new, "repetition=1").out.splitlines()
    assert float(one[1].split(",")[1]) == pytest.approx(probability(scores[1], 0.25, 0.5)[0])
    new.write_text(new.read_text().replace("yes", "maybe"))
    said = "the table has the labels 'maybe' and 'no' but the run learned 'no' and 'yes': no error"
    assert said in predict(call, run, new).err


def labelled(folder):
    """Learn two labels."""
    learned = [model | {"share": np.array(0.5), "explained": np.array(0.5)} for model in LEARNED]
    fill(folder, learned=learned, names=NAMES, target="y", labels=("no", "yes"))
    return folder


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["yes", "", "no", "yes"], "on the 3 rows of"),
        (["yes"] * 4, "error rate 0.25 on the 4 rows of"),
        (["", "no", "", ""], "error rate 0 on the 1 row of"),
        (["maybe"] * 4, "'maybe' is not a number (text needs exactly two values, not 1): no error is computed"),
        (["yes", "no", "maybe", "no"], "text needs exactly two values, not 3): no error is computed"),
        ([1, 1, 1, 1], "the table has no two labels but the run learned labels: no error is computed"),
    ],
)
def test_rows_are_predicted_whatever_their_targets_are(tmp_path, call, targets, said):
    columns = dict(zip(NAMES, X.T.tolist(), strict=True))
    plain, other = (table(tmp_path / f"{name}.csv", columns) for name in ("plain", "other"))
    table(other, {**columns, "y": targets})
    folder = labelled(tmp_path / "labelled")
    answer = predict(call, folder, other)
    assert answer.out == predict(call, folder, plain).out
    assert said in answer.err


def test_a_table_with_wrong_attributes_is_refused_for_these(tmp_path, call):
    columns = dict(zip(NAMES, X.T.tolist(), strict=True)) | {"old": ["a"] * 4, "y": ["yes"] * 4}
    answer = predict(call, labelled(tmp_path / "labelled"), table(tmp_path / "wrong.csv", columns), code=3)
    assert "'old': 'a' is not a number" in one_line(answer.err)


def test_ids_do_not_give_way_to_predictions(tmp_path, call):
    columns = {"label": list("pqrs"), **dict(zip(NAMES, X.T.tolist(), strict=True))}
    answer = predict(call, labelled(tmp_path / "labelled"), table(tmp_path / "ids.csv", columns), "id=label")
    lines = [line.split(",") for line in answer.out.splitlines()]
    assert lines[0] == ["example", "prediction", "probability", "label"]
    assert [line[0] for line in lines[1:]] == list("pqrs")


def test_predictions_that_are_impossible_are_one_line(tmp_path, run, call):
    short = table(tmp_path / "short.csv", {"rich": X[:, 2], "old": X[:, 0]})
    other = table(tmp_path / "other.csv", dict(zip(("old", "Tall", "rich"), X.T, strict=True)))
    np.savez(tmp_path / "wide.npz", X=np.ones((2, 4)))
    empty = table(tmp_path / "empty.csv", dict(zip(NAMES, X.astype(str).T, strict=True)))
    empty.write_text(empty.read_text().replace("120.0", ""))
    (tmp_path / "new.txt").write_text("1")
    begun, subspace = tmp_path / "begun", tmp_path / "subspace"
    fill(begun, [1], names=NAMES)
    fill(subspace, [0], asked=1, learned=[{"V": np.eye(3)[:, :1], "c": np.zeros(3), "scale": np.ones(3)}])
    for words, code, said in [
        ((run, short), 3, "short.csv: there is no column 'tall', which the run learned from"),
        ((run, other), 3, "no column 'tall' (did you mean 'Tall'?), which the run learned from"),
        ((run, tmp_path / "wide.npz"), 3, "wide.npz has 4 attributes and the run learned from 3"),
        ((run, empty), 3, "column 'tall': empty or NaN"),
        ((run, tmp_path / "no.csv"), 3, "no.csv: No such file"),
        ((tmp_path / "wide.npz", empty), 3, "wide.npz is not a model, or damaged: it needs weights w and a centre c"),
        ((empty, empty), 3, "empty.csv is not a model, or damaged: File is not a zip file"),
        ((subspace / "model.npz", empty), 2, "model.npz holds a subspace, which makes no predictions"),
        ((run, tmp_path / "new.txt"), 2, "new.txt: a table ends in .csv, .tsv, "),
        ((run, tmp_path), 3, "is a folder without X.npy"),
        ((begun, empty), 2, "has finished 1 of 3 repetitions: the command that made it computes the others"),
        ((begun, empty, "repetition=0"), 2, f"repetition=0: {begun} has the repetition 1"),
        ((subspace, empty), 2, "toy learned a subspace, which makes no predictions"),
        ((tmp_path, empty), 3, "holds no run"),
        ((run, empty, "repetition=x"), 2, "repetition=x: must be a whole number of at least 0"),
        ((run, empty, "repetitions=1"), 2, "predict has no such key (did you mean 'repetition'?); keys: repetition, "),
        ((run,), 2, "TABLE"),
    ]:
        answer = predict(call, *words, code=code)
        assert answer.out == ""
        assert said in one_line(answer.err)


def test_numpy_alone_reads_a_model(run):
    with np.load(io.BytesIO((run / "model.npz").read_bytes()), allow_pickle=False) as file:
        w, b, c = (file[name] for name in ("w", "b", "c"))
    np.testing.assert_allclose(np.mean(b + ((X[:, None] - c) * w).sum(axis=2), axis=1), expected(X))
