"""The test error that orders of a study buy, beside random cells, complete rows and a fixed subset at the same money.

Each game is played on a table, see `TABLES`, with a seed that decides the split and all draws. The money is a share of
the price of all cells. ``ask`` spends it in four orders, learning in between, as a study does. The others are:

- random: cells of any example, in random order;
- complete: complete rows, with ridge;
- subset: complete rows for a quarter of the money, and then the attributes of the largest ``w_i^2 s_i^2`` per price
  by ridge on these, as many as the rest of the money buys of all other examples, with ridge.

Writes results/orders.csv, with a row for each game: the errors on complete test rows, relative to that of predicting
the mean. Finished games are not played again. Writes results/orders_ratios.csv, the geometric means of ``ask`` divided
by the others, and prints them, and whether they are as small as they should be.

    .venv/bin/python scripts/order_games.py --n-jobs 2
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from budgetreg.common.files import write_atomically
from budgetreg.study.model import learn
from budgetreg.study.orders import recommend

RESULTS = Path(__file__).resolve().parents[1] / "results" / "orders.csv"

SHARES = (0.05, 0.1, 0.2, 0.4)
"""Money, in prices of all cells."""

ORDERS = 4

OTHERS = ["random", "complete", "subset"]

Table = tuple[np.ndarray, np.ndarray, np.ndarray]
"""X, y and the prices of the attributes."""


def bundled(X: np.ndarray, y: np.ndarray) -> Callable[[np.random.Generator], Table]:
    """Return a table as it is, with equal prices."""
    return lambda rng: (X, y.astype(float), np.ones(X.shape[1]))


def simulated(
    d: int = 20,
    *,
    factors: int = 0,
    support: int = 0,
    tails: float = 0.0,
    prices: bool = False,
    n: int = 1200,
    noise: float = 0.2,
) -> Callable[[np.random.Generator], Table]:
    """Return a table with a linear target, with other weights for each game.

    Parameters
    ----------
    d, n : int
        Numbers of attributes, and of examples, of which 240 are for training.
    factors : int
        Common factors of the attributes; 0 if they are independent.
    support : int
        Number of weights other than 0; 0 for all.
    tails : float
        Degrees of freedom of Student's t distribution of the attributes; 0 for normal ones.
    prices : bool
        Whether attributes cost the more the more they share with the target, from 1 to 10; else 1 each.
    noise : float
        Share of the target's variance.
    """

    def draw(rng: np.random.Generator) -> Table:
        shape = (n, d)
        X = rng.standard_t(tails, shape) if tails else rng.normal(size=shape)
        if factors:
            X = rng.normal(size=(n, factors)) @ rng.normal(size=(factors, d)) / np.sqrt(factors) + 0.5 * X
        w = rng.normal(size=d)
        if support:
            w = np.where(np.arange(d) < support, np.sign(w), 0.0)
        signal = X @ w
        y = signal / signal.std() + np.sqrt(noise / (1 - noise)) * rng.normal(size=n)
        shared = np.abs(np.corrcoef(X.T, y)[-1, :-1])
        return X, y, 1 + np.round(9 * shared / shared.max()) if prices else np.ones(d)

    return draw


DIGITS, LABELS = load_digits(return_X_y=True)
THREES_AND_FIVES = np.isin(LABELS, (3, 5))
TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "diabetes": bundled(*load_diabetes(return_X_y=True)),
    "breast cancer": bundled(*load_breast_cancer(return_X_y=True)),
    "wine": bundled(*load_wine(return_X_y=True)),
    "digits": bundled(DIGITS[THREES_AND_FIVES], LABELS[THREES_AND_FIVES]),
    "low rank": simulated(30, factors=3),
    "sparse": simulated(40, support=4),
    "one carries": simulated(support=1),
    "heavy tails": simulated(tails=3.0),
    "independent": simulated(),
    "prices": simulated(factors=3, prices=True),
}


def by_ridge(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that predicts, fitted to complete rows; the mean of fewer than three."""
    if len(X) < 3:
        mean = y.mean() if len(y) else 0.0
        return lambda rows: np.full(len(rows), mean)
    fitted = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 30))).fit(X, y)
    return lambda rows: np.asarray(fitted.predict(rows))


def asked(X: np.ndarray, y: np.ndarray, prices: np.ndarray, money: float, rng: np.random.Generator) -> np.ndarray:
    """Return which cells are bought in a few orders, each of which may cost as much."""
    known = np.zeros(X.shape, dtype=bool)
    spent, every = 0.0, np.ones(len(X), dtype=bool)
    for order in range(ORDERS):
        model = learn(np.where(known, X, np.nan), y, seed=order) if order else None
        left = money * (order + 1) / ORDERS - spent
        bought, _ = recommend(model, known, ~known, known, prices, np.arange(len(prices)), every, left, None, rng)
        known[tuple(bought.cells.T)] = True
        spent += bought.cost
    return known


def random_cells(X: np.ndarray, prices: np.ndarray, money: float, rng: np.random.Generator) -> np.ndarray:
    """Return which cells are bought, each of any example, while the money lasts."""
    cells = rng.permutation(X.size)
    bought = cells[np.cumsum(prices[cells % X.shape[1]]) <= money]
    known = np.zeros(X.shape, dtype=bool)
    known.reshape(-1)[bought] = True
    return known


def of_subset(X: np.ndarray, y: np.ndarray, prices: np.ndarray, money: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that predicts from a few attributes, which a pilot of complete rows has chosen."""
    pilot = int(money / 4 / prices.sum())
    order, left = np.arange(X.shape[1]), len(X) - pilot
    if pilot >= 3:
        scaled = StandardScaler().fit_transform(X[:pilot])
        w = RidgeCV(np.logspace(-3, 4, 30)).fit(scaled, y[:pilot]).coef_
        order = np.argsort(-np.square(w) / prices, kind="stable")
    rest = money - pilot * prices.sum()
    many = max(1, int(np.searchsorted(np.cumsum(prices[order]) * left, rest, side="right")))
    chosen = order[:many]
    rows = pilot + min(left, int(rest / prices[chosen].sum()))
    predict = by_ridge(X[:rows, chosen], y[:rows])
    return lambda X: predict(X[:, chosen])


def play(table: str, share: float, seed: int) -> dict[str, object]:
    """Return the errors of one game."""
    rng = np.random.default_rng([seed, *table.encode()])
    X, y, prices = TABLES[table](rng)
    rows = rng.permutation(len(X))
    train, test = np.split(rows, [240 if len(X) == 1200 else int(0.7 * len(X))])
    X_train, y_train, X_test = X[train], y[train], X[test]
    money = share * len(train) * prices.sum()

    def by_model(known: np.ndarray) -> np.ndarray:
        return learn(np.where(known, X_train, np.nan), y_train, seed=seed).predict(X_test)

    predicted = {
        "ask": by_model(asked(X_train, y_train, prices, money, rng)),
        "random": by_model(random_cells(X_train, prices, money, rng)),
        "complete": by_ridge(X_train[: int(money / prices.sum())], y_train[: int(money / prices.sum())])(X_test),
        "subset": of_subset(X_train, y_train, prices, money)(X_test),
    }
    scale = np.square(y[test] - y_train.mean()).mean()
    errors = {name: float(np.square(y[test] - each).mean() / scale) for name, each in predicted.items()}
    return {"table": table, "money": share, "seed": seed} | errors


def compared(played: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric means of the error of `ask` divided by those of the others, with 95 % intervals over seeds.

    They are means over games of a table, of an amount of money, or over all. The best of the others is, for each
    amount, the one with the least error over tables and seeds. Three ratios have a goal, one of them on the table where
    it is largest.
    """
    ratios = played[OTHERS].rdiv(played["ask"], axis=0).apply(np.log).join(played[["table", "money", "seed"]])
    best = ratios.groupby("money")[OTHERS].mean().idxmax(axis=1)
    ratios["best"] = [row[best[row["money"]]] for _, row in ratios.iterrows()]
    parts = {f"{share:.0%}".replace("%", " %"): ratios[ratios["money"] == share] for share in SHARES}
    parts |= {str(table): some for table, some in ratios.groupby("table")} | {"all": ratios}
    rows = []
    for of, some in parts.items():
        for beside in [*OTHERS, "best"]:
            by_seed = some.groupby("seed")[beside].mean()
            half = stats.t.ppf(0.975, len(by_seed) - 1) * stats.sem(by_seed)
            mean, low, high = np.exp(by_seed.mean() + np.array([0, -half, half]))
            rows.append({"of": of, "beside": beside, "ratio": mean, "low": low, "high": high})
    result = pd.DataFrame(rows)
    worst = result[result["of"].isin(played["table"]) & (result["beside"] == "random")]
    largest = worst.sort_values("ratio")["of"].iloc[-1]
    goals = {("all", "random"): 0.93, (largest, "random"): 1.02, ("all", "best"): 0.97}
    result["goal"] = [goals.get(key) for key in zip(result["of"], result["beside"], strict=True)]
    result["verdict"] = np.select(
        [result["goal"].isna(), result["high"] <= result["goal"], result["low"] > result["goal"]],
        ["", "holds", "fails"],
        "open",
    )
    return result


def main() -> None:
    """Play the games, write the errors, and print what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="TABLE")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    games = [(table, share, seed) for seed in range(chosen.seeds) for table in chosen.tables for share in SHARES]
    done = pd.read_csv(chosen.out).to_dict("records") if chosen.out.exists() else []
    finished = {(row["table"], row["money"], row["seed"]) for row in done}
    left = (joblib.delayed(play)(*game) for game in games if game not in finished)
    for row in joblib.Parallel(n_jobs=chosen.n_jobs, return_as="generator_unordered")(left):
        done.append(row)
        played = pd.DataFrame(done).sort_values(["seed", "table", "money"])
        write_atomically(chosen.out, played.to_csv(index=False, float_format="%.6g").encode())
    played = pd.DataFrame(done)
    ratios = compared(played).round(4)
    write_atomically(chosen.out.with_stem(f"{chosen.out.stem}_ratios"), ratios.to_csv(index=False).encode())
    print(ratios.pivot_table(index="of", columns="beside", values="ratio", sort=False).round(3).to_string(), "\n")
    print(ratios[ratios["verdict"] != ""].to_string(index=False))


if __name__ == "__main__":
    main()
