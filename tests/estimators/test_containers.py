"""Tables in any container have the numbers and the bill of the array that they hold, or are refused in one line."""

import warnings
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import coo_array, csr_array

from budgetreg.estimators import AELR, AEML, POPCA, FixedSubset, ImputeRidge, ObservationError, Ridge, SGDImpute
from tests.estimators.tables import Observed, table

X, Y = table(20, 4)
HOLES = np.where(np.abs(X) > 6, np.nan, X)
MASKED = np.ma.masked_array(np.where(np.isnan(HOLES), 777.0, HOLES), mask=np.isnan(HOLES))
SMALL = {"k": 2, "B": 1.0, "eta": 0.1, "pilot": 0, "scale": "none"}


def cells(of: np.ndarray, hole: Any) -> np.ndarray:
    array = of.astype(object)
    array[np.isnan(of)] = hole
    return array


SAME: dict[str, Any] = {
    "masked": MASKED,
    "masked rows": list(MASKED),
    "masked cells in lists": [[np.ma.masked if np.isnan(x) else x for x in row] for row in HOLES],
    "a frame": pd.DataFrame(HOLES),
    "None in lists": cells(HOLES, None).tolist(),
    "NA in lists": cells(HOLES, pd.NA).tolist(),
    "NA in a column of objects": pd.DataFrame(cells(HOLES, pd.NA)),
    "nullable": pd.DataFrame(HOLES).astype("Float64"),
    "of Arrow": pd.DataFrame(HOLES).astype("double[pyarrow]"),
    "categories": pd.DataFrame(HOLES).astype("category"),
    "sparse with NaN": pd.DataFrame(HOLES).astype(pd.SparseDtype(float, np.nan)),
    "sparse with 0": pd.DataFrame(HOLES).astype(pd.SparseDtype(float, 0.0)),
    "of other bytes": HOLES.astype(">f8"),
    "in columns": np.asfortranarray(HOLES),
}


@pytest.mark.parametrize("name", SAME)
def test_a_cell_that_is_not_there_is_not_learned_from_or_charged(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NumPy's, about masked cells in lists
        model, array = FixedSubset(k=3).fit(SAME[name], pd.Series(Y)), FixedSubset(k=3).fit(HOLES, Y)
    np.testing.assert_array_equal(model.coef_, array.coef_)
    assert model.attributes_seen_ == array.attributes_seen_


def test_masked_cells_are_predicted_from_what_is_there(short_chains: None) -> None:
    model = AEML(n_factors=1).fit(MASKED, Y)
    assert model.attributes_seen_ == np.isfinite(HOLES).sum()
    np.testing.assert_array_equal(model.predict(MASKED), model.predict(HOLES))
    named = AEML(n_factors=1).fit(pd.DataFrame(HOLES, columns=list("abcd")).astype("Float64"), Y)
    assert list(named.feature_names_in_) == list("abcd")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Ridge(B=1.0).fit(MASKED, Y),
        lambda: Ridge(B=1.0).fit(X, Y).predict(MASKED),
        lambda: POPCA(k=2, n_components=1).fit(X).transform(MASKED),
        lambda: POPCA(k=2, n_components=1).fit(X).inverse_transform(np.ma.masked_array([[1.0]], mask=True)),
        lambda: SGDImpute(**SMALL).partial_fit(MASKED, Y),
    ],
)
def test_a_mask_is_refused_where_nan_is(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="contains NaN"):
        call()


@pytest.mark.parametrize("model", [Ridge(B=1.0), AEML(n_factors=1)])
def test_masked_targets_are_refused(model: Any) -> None:
    masked = np.ma.masked_array(Y, mask=[True] + [False] * 19)
    with pytest.raises(ValueError, match="y has masked targets"):
        model.fit(X, masked)
    with pytest.raises(ValueError, match="y has masked targets"):
        Ridge(B=1.0).fit(X, Y).score(X, masked)


def with_cell(value: Any) -> np.ndarray:
    array = X.astype(object)
    array[3, 1] = value
    return array


REFUSED: dict[str, tuple[Any, str]] = {
    "dates": (X.astype("M8[D]"), "X holds dates"),
    "a column of dates": (
        pd.DataFrame(X, columns=list("abcd")).assign(b=pd.date_range("2020", periods=20)),
        "X: column 'b' holds dates",
    ),
    "dates with zones": (pd.DataFrame({"a": pd.date_range("2020", periods=20, tz="UTC"), "b": Y}), "holds dates"),
    "a date": (with_cell(date(2020, 1, 1)), "X holds dates"),
    "a date of NumPy": (with_cell(np.datetime64("2020-01-01")), "X holds dates"),
    "a column of dates of Arrow": (
        pa.table({"a": Y, "b": X[:, 0].astype("M8[D]"), "c": Y}),
        "X holds dates",
    ),
    "columns of one name": (pd.DataFrame(X, columns=list("abca")), "X: two columns are named 'a': rename one"),
    "durations": (X.astype("m8[s]"), "X holds durations"),
    "a duration": (with_cell(timedelta(1)), "X holds durations"),
    "a duration of NumPy": (with_cell(np.timedelta64(3, "s")), "X holds durations"),
    "complex": (X.astype(complex), "X holds complex values"),
    "a complex cell": (with_cell(np.complex128(2j)), "X holds complex values"),
    "numbers as text": (X.astype(str), "X holds text"),
    "a number as text": (with_cell("1"), "X holds text"),
    "a column of text": (pd.DataFrame(X).assign(more="1"), "X: column 'more' holds text"),
    "sparse complex": (csr_array(X.astype(complex)), "X holds complex values"),
    "a large value": (np.where(X[3, 1] == X, 1e155, X), r"X: attribute number 2: its largest .* 1e\+155"),
    "a sum of stored values": (
        csr_array((np.full(9, 1.2e29), [0] * 9, [0, 9, *[9] * 19]), shape=X.shape),
        r"1\.08e\+30",
    ),
}


def test_other_objects_are_refused_with_their_column() -> None:
    frame = pd.DataFrame({"a": pd.period_range("2020", periods=20, freq="D"), "b": Y})
    with pytest.raises(TypeError, match=r"^X: column 'a': .* not 'Period'$"):
        FixedSubset(k=2).fit(frame, Y)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_number_is_refused_in_one_line(name: str) -> None:
    given, message = REFUSED[name]
    fitted = POPCA(k=2, n_components=1).fit(X)
    for call in (FixedSubset(k=2).fit, SGDImpute(**SMALL).partial_fit, lambda given, y: fitted.transform(given)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # names of columns
            with pytest.raises(ValueError, match=message) as refusal:
                call(given, Y)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("size", "fits"), [(1e-155, False), (1e-28, True), (1e28, True), (1e155, False), (1e300, False)]
)
def test_sizes_that_cannot_be_computed_with_are_refused(size: float, fits: bool) -> None:
    """Squares of them would be 0 or infinite, and so would weights be."""
    column = X * [1, 1, size, 1]
    bad = "its largest absolute value is"
    calls: list[Callable[[], Any]] = [
        lambda: Ridge(B=1.0).fit(column, Y),
        lambda: Ridge(B=1.0).fit(csr_array(column), Y),
        lambda: Ridge(B=1.0).fit(pd.DataFrame(column, columns=list("abcd")), Y),
        lambda: Ridge(B=1.0).fit(X, Y * size),
        lambda: SGDImpute(**SMALL).partial_fit(column, Y),
        lambda: SGDImpute(**SMALL).partial_fit(X, Y * size),
        lambda: AELR(**SMALL).fit(lambda example, attributes: X[example, attributes], y=Y * size, n_features=4),
    ]
    for call in calls:
        if fits:
            model = call()
            assert np.isfinite(model.coef_).all()
        else:
            with pytest.raises(ValueError, match=bad) as refusal:
                call()
            assert "\n" not in str(refusal.value)
    if size > 1 and not fits:
        for call in (Ridge(B=1.0).fit(X, Y).predict, POPCA(k=2, n_components=1).fit(X).transform):
            with pytest.raises(ValueError, match=bad):
                call(column)  # type: ignore[operator]
    else:
        assert np.isfinite(Ridge(B=1.0).fit(X, Y).predict(column)).all()


def test_what_was_paid_for_is_kept_when_its_unit_is_too_large() -> None:
    """Only when all is observed it is known that no value of the attribute is large enough; another unit helps."""
    units, model = np.array([1, 1e-155, 1, 1]), ImputeRidge(k=4, pilot=2)
    with pytest.raises(ObservationError, match=r"attribute 1: its largest absolute value is .*e-155") as failure:
        model.fit(lambda i, at: (X * units)[i, at], y=Y, n_features=4)
    known = failure.value.values / units
    np.testing.assert_array_equal(np.isfinite(known[failure.value.example]), True)
    model.fit(lambda i, at: pytest.fail("paid for twice"), y=Y, n_features=4, known=known)
    for d in (4.0, "4", 0, -3, True):
        with pytest.raises(ValueError, match=r"n_features=.*: must be a whole number of at least 1"):
            model.fit(lambda i, at: X[i, at], y=Y, n_features=d)
    np.testing.assert_allclose(model.coef_, ImputeRidge(k=4, pilot=2).fit(X, Y).coef_)
    with pytest.raises(ValueError, match="known: attribute number 2"):
        model.fit(lambda i, at: X[i, at], y=Y, n_features=4, known=X / units)


ANSWERS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "masked": (lambda values: np.ma.masked_array(values * 0 + 777, mask=True), "observe returned nan for attribute"),
    "masked in a list": (lambda values: [np.ma.masked, *values[1:]], "observe returned nan for attribute"),
    "NA": (lambda values: pd.array([pd.NA, *values[1:]], dtype="Float64"), "observe returned nan for attribute"),
    "dates": (lambda values: values.astype("M8[D]"), "no numbers .*holds dates"),
    "durations": (lambda values: values.astype("m8[s]"), "no numbers .*holds durations"),
    "text": (lambda values: values.astype(str), "no numbers .*holds text"),
    "too large": (lambda values: values * 0 + 1e155, r"observe returned 1e\+155 for attribute [0-3]"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_function_cannot_have_meant_is_not_learned_from(name: str) -> None:
    answer, message = ANSWERS[name]
    with pytest.raises(ObservationError, match=message) as failure:
        ImputeRidge(k=2).fit(lambda i, at: answer(X[i, at]), y=Y, n_features=4)
    assert "\n" not in str(failure.value)
    assert np.isnan(failure.value.values).all()


def test_known_values_may_be_masked() -> None:
    observe = Observed(X)
    FixedSubset(k=4, pilot=0).fit(observe, y=Y, n_features=4, known=MASKED)
    assert sorted(observe.cells) == [tuple(cell) for cell in np.argwhere(np.isnan(HOLES)).tolist()]


def test_functions_are_asked_for_distinct_ascending_attributes() -> None:
    """AELR draws attributes with replacement, and in any order."""
    observe = Observed(X)
    AELR(**{**SMALL, "k": 4}).fit(observe, y=Y, n_features=4)
    assert all(attributes == sorted(set(attributes)) for _, attributes in observe.calls)
    assert max(len(attributes) for _, attributes in observe.calls) > 1


def test_stored_values_of_a_cell_are_added_once() -> None:
    rows, columns = np.nonzero(X)
    halves = coo_array((np.tile(X[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape)
    order = np.argsort(np.tile(rows, 2), kind="stable")
    starts = np.arange(0, 2 * X.size + 1, 2 * X.shape[1])
    doubled = csr_array((halves.data[order], halves.coords[1][order], starts), shape=X.shape)
    assert doubled.nnz == 2 * X.size
    given = doubled.copy()
    model, array = AELR(**SMALL).fit(given, Y), AELR(**SMALL).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, array.coef_)
    np.testing.assert_array_equal(model.predict(doubled), array.predict(X))
    assert given.nnz == doubled.nnz  # it is not changed


@pytest.mark.parametrize("kind", [AELR, Ridge, POPCA])
def test_stored_values_have_the_scale_of_the_array(kind: Any) -> None:
    sparse = np.where(np.abs(X) > 2, X, 0.0)
    given = {
        AELR: {**SMALL, "scale": "max_abs"},
        Ridge: {"B": 1.0, "scale": "max_abs"},
        POPCA: {"k": 2, "n_components": 1},
    }
    dense, stored = (kind(random_state=0, **given[kind]).fit(table, Y) for table in (sparse, csr_array(sparse)))
    name = "components_" if kind is POPCA else "coef_"
    np.testing.assert_allclose(getattr(stored, name), getattr(dense, name), rtol=1e-9)


def test_names_come_out_of_a_pipeline() -> None:
    model = POPCA(k=2, n_components=2).set_output(transform="pandas")
    frame = model.fit_transform(pd.DataFrame(X, columns=list("abcd")))
    assert list(frame.columns) == list(model.get_feature_names_out()) == ["popca0", "popca1"]
    np.testing.assert_array_equal(frame, POPCA(k=2, n_components=2).fit(X).transform(X))
