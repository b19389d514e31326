"""The mutants of ``make mutants`` on what is bought: values and units, groups and gaps, bills, pilots, intervals."""

from contextlib import nullcontext

from mutation import Mutant, around, rewrite

ADVICE = "tests/analysis/test_advice.py"
CALIBRATION = "tests/protocol/test_calibration.py"
CHOOSING_K = (
    "tests/protocol/test_choosing_k.py::test_choices_are_planned_at_doubled_amounts_while_enough_is_left"  # in-process
)
COLLECTION = "tests/revealed/test_collection.py"
CELLS = "tests/sampling/test_cells.py"
CONSTANT = "tests/learners/test_constant_attributes.py"
DESIGNS = "tests/sampling/test_designs.py"
FIT = "tests/cli/test_fit.py"
FIXED_SUBSET = "tests/learners/test_fixed_subset.py"
GROUPS = "tests/protocol/test_groups.py"
MISSING_RUNS = "tests/protocol/test_missing.py"
NAMES = "tests/study/test_names.py"
OUT = "tests/cli/test_out.py"
RESULTS = "tests/study/test_results.py"
SCALE = "tests/protocol/test_scale.py"
STORE = "tests/study/test_store.py"
TAILS = "tests/learners/test_tails.py"
UNKNOWN_SCALE = "tests/learners/test_unknown_scale.py"
WEIGHTS = "tests/sampling/test_importance_weights.py"

OFFSETS = "revealed:EqualValues.offsets"
KNOWN = "revealed:EqualValues.known"
EXCESS = "revealed.tails:excess"
PER_MONEY = "revealed.importance_weights:per_money"
REPLACED = "revealed.designs:replaced"
PROBABILITY = "protocol.calibration:probability"
BY_CELLS = "protocol.calibration:explained_by_cells"
SELECTED = "algorithms.comparison.fixed_subset:_selected"
BILL = "runs.bill:_bill"
PILOT = "protocol.spending:Spending.automatic_pilot"
BOUGHT = "protocol.spending:Spending.bought"
DEPTH = "revealed.cells:_Purchase._least_error"
PURCHASE = "revealed.cells:_Purchase.__init__"
CHOSEN = "revealed.cells:_Purchase.cells"
COLLECT = "revealed.collection:collect"
ROUNDS = "revealed.purchases:_Buyer.rounds"
FOREIGN = "files:refuse_foreign"
COSTS = "study.results:_Costs.check"

MUTANTS = (
    # Columns whose values are all equal
    Mutant(
        "four equal values are an intercept",
        OFFSETS,
        rewrite("self.counts >= enough", "self.counts >= enough - 1"),
        "an attribute that chance has shown as constant explains the mean",
        (CONSTANT,),
    ),
    Mutant(
        "a column of zeros is an intercept",
        OFFSETS,
        rewrite("self.values != 0", "self.values == self.values"),
        "a rare attribute explains the mean before it is seen",
        (CONSTANT,),
    ),
    Mutant(
        "44 equal values are enough for any number of examples",
        KNOWN,
        rewrite("max(_CERTAIN, np.sqrt(examples))", "_CERTAIN"),
        "an attribute that rarely varies is never seen again",
        (CONSTANT,),
    ),
    Mutant(
        "a rare attribute is known",
        KNOWN,
        rewrite("(self.values != 0) | centred", "self.values == self.values"),
        "an attribute that is mostly 0 is never seen again",
        (CONSTANT,),
    ),
    Mutant(
        "centred columns are constant, too",
        "revealed.equal_values:equal_values",
        rewrite("raw | _1", "True | _1"),
        "what unpaid means leave of a constant is an intercept",
        (CONSTANT,),
    ),
    Mutant(
        "the variance of equal values ignores other columns",
        "revealed.equal_values:variance",
        rewrite("np.square(value) + others", "np.square(value) + 0 * others"),
        "a column of zeros is certain not to vary",
        (CONSTANT,),
    ),
    # Units and heavy tails
    Mutant(
        "the unit of a constant attribute is 1",
        "revealed.units:units",
        rewrite("np.where(size > 0, size, 1.0)", "np.ones_like(size)"),
        "another unit of a constant changes predictions",
        (CONSTANT, SCALE),
    ),
    Mutant(
        "units with the divisor n",
        "revealed.units:units",
        rewrite("counts - 1", "counts"),
        "radii are not in units of the standard deviations",
        (SCALE,),
    ),
    Mutant(
        "regressors stay in units",
        "revealed.units:Rescaled.as_revealed",
        around(lambda as_revealed, rescaled, outputs: outputs),
        "a regressor is applied to other values than it was learned from",
        (FIXED_SUBSET,),
    ),
    Mutant(
        "new values are like those seen",
        EXCESS,
        around(lambda excess, *args: 0.0),
        "the next large value spoils a prediction",
        (TAILS,),
    ),
    Mutant(
        "tails have no standard error",
        EXCESS,
        rewrite("1 + error / g", "1.0"),
        "tails that chance shows as light are believed",
        (TAILS,),
    ),
    Mutant(
        "tails lighter than normal",
        EXCESS,
        rewrite("max(0.0, _1)", "_1"),
        "values that are bounded count as more certain than normal ones",
        (TAILS,),
    ),
    Mutant(
        "every variance is finite",
        "revealed.tails:infinite_variance",
        around(lambda infinite, *args: False),
        "a test value larger than all that were seen decides",
        (TAILS,),
    ),
    # Attributes whose values do not show their scale
    Mutant(
        "no spread is negligible",
        "revealed.units:negligible",
        around(lambda negligible, *args: negligible(*args) & False),
        "what rounding leaves of an attribute is a unit, and the next value moves a prediction by any factor",
        (UNKNOWN_SCALE,),
    ),
    Mutant(
        "no values spread over decades",
        "revealed.tails:over_decades",
        around(lambda over_decades, columns: over_decades(columns) & False),
        "one value decides a unit, and the next one is a thousand times as large",
        (UNKNOWN_SCALE,),
    ),
    Mutant(
        "few values show how far away others will be",
        "revealed.tails:few_differ",
        around(lambda few_differ, *args: False),
        "one value beside equal ones is a unit",
        (UNKNOWN_SCALE,),
    ),
    # Intervals
    Mutant(
        "differences are not paired",
        "analysis.paired:difference",
        rewrite("_shares(errors) - _shares(reference)", "_shares(errors)"),
        "the luck of a split passes for a difference, or hides one",
        (ADVICE,),
    ),
    Mutant(
        "intervals as if the variance were known",
        "analysis.paired:_half_width",
        rewrite("stdtrit(n - 1, ONE_SIDED)", "1.645"),
        "few repetitions seem surer than they are",
        (ADVICE,),
    ),
    Mutant(
        "standard deviation over repetitions with the divisor n",
        "analysis.paired:_half_width",
        rewrite("influences.std(ddof=1)", "influences.std()"),
        "few repetitions seem surer than they are",
        (ADVICE,),
    ),
    Mutant(
        "intervals on the scale of errors",
        "analysis.paired:mean_error",
        rewrite("mean * exp(half_width)", "mean * (1 + half_width)"),
        "skewed errors are more often beyond the upper end than documented",
        (ADVICE,),
    ),
    # Prices
    Mutant(
        "plans ignore prices",
        PER_MONEY,
        around(lambda per_money, weights, prices: weights),
        "expensive attributes are bought as often as cheap ones",
        (WEIGHTS,),
    ),
    Mutant(
        "prices divide as for single values",
        PER_MONEY,
        rewrite("1 + prices / _1", "prices / _1"),
        "products of expensive attributes are hardly ever seen",
        (WEIGHTS,),
    ),
    Mutant(
        "the mean price is that without prices",
        PER_MONEY,
        rewrite("range(_ROUNDS)", "range(1)"),
        "the plan is not the best one for its price",
        (WEIGHTS,),
    ),
    # Gaps
    Mutant(
        "an attribute is drawn twice for an example with a gap",
        REPLACED,
        rewrite("others[drawn[example]] = False", "pass"),
        "a value is paid for twice",
        (DESIGNS,),
    ),
    Mutant(
        "gaps are filled by other gaps",
        REPLACED,
        rewrite("available[example] & _1", "_1"),
        "fewer values are bought than the budget pays for",
        (DESIGNS,),
    ),
    Mutant(
        "any attribute is as likely to fill a gap",
        REPLACED,
        rewrite("u[order] / (1 - u[order]) * odds[order]", "u[order]"),
        "the plan does not hold where values are missing",
        (DESIGNS,),
    ),
    Mutant(
        "attributes of probability 0 fill gaps",
        REPLACED,
        rewrite("available[example] & (p > 0)", "available[example].copy()"),
        "known and free attributes are bought again",
        (DESIGNS,),
    ),
    # Groups
    Mutant(
        "each attribute of a group is charged",
        "data.dataset:uncharged",
        around(lambda uncharged, free, groups: free),
        "a panel costs several times its price",
        (GROUPS,),
    ),
    Mutant(
        "a part of a group may be revealed",
        "data.dataset:Groups.are_whole",
        around(lambda are_whole, groups, attributes, drawn: True),
        "nobody can buy what a learner saw",
        (GROUPS,),
    ),
    Mutant(
        "draws have room for the smallest groups alone",
        "data.dataset:Groups.width",
        rewrite("np.sort(sizes)[len(sizes) - k :]", "np.sort(sizes)[:k]"),
        "attributes of a group that was paid for are not seen",
        (GROUPS,),
    ),
    Mutant(
        "attributes without a group are one group",
        "data.dataset:numbered",
        rewrite("first.setdefault(name, at) if name else at", "first.setdefault(name, at)"),
        "everything without a group has one price",
        (GROUPS,),
    ),
    # Probabilities of labels
    Mutant(
        "probabilities as if labels were equally frequent",
        PROBABILITY,
        rewrite("(1 - 2 * share) / unit", "0.0"),
        "rare labels seem more probable than they are",
        (CALIBRATION,),
    ),
    Mutant(
        "probabilities as if nothing were explained",
        PROBABILITY,
        rewrite("unit * (1 - explained)", "unit"),
        "good regressors seem less sure than they are",
        (CALIBRATION,),
    ),
    Mutant(
        "few examples may explain everything",
        "protocol.calibration:calibrated",
        rewrite("min(max(explained, 0.0), _1)", "max(explained, 0.0)"),
        "a regressor that overfits is certain",
        (CALIBRATION,),
    ),
    Mutant(
        "what is explained has no standard error",
        BY_CELLS,
        rewrite("terms.sum() - error", "terms.sum()"),
        "a regressor is surer of what it was fitted to than of what is new",
        (CALIBRATION,),
    ),
    Mutant(
        "what is explained depends on the mean of the labels",
        BY_CELLS,
        rewrite("table.y[row] - mean_target[attribute]", "table.y[row]"),
        "where one label is rare, regressors seem to explain less than they do",
        (CALIBRATION,),
    ),
    Mutant(
        "what is stored in gaps explains",
        "protocol.calibration:_blocks",
        rewrite("table.available is not None", "False"),
        "probabilities depend on values that do not exist",
        (CALIBRATION,),
    ),
    # The same k attributes of every example
    Mutant(
        "the choice ignores the mean of the target",
        SELECTED,
        rewrite("y.mean() if given.intercept else 0.0", "0.0"),
        "attributes are chosen by another regression than is fitted",
        (FIXED_SUBSET,),
    ),
    Mutant(
        "the choice is least squares",
        SELECTED,
        rewrite("_1 / np.count_nonzero(seen)", "1e-9"),
        "a few rows of the pilot decide more than they know",
        (FIXED_SUBSET,),
    ),
    Mutant(
        "attributes that are equally good come in the order of the file",
        SELECTED,
        rewrite("order[(~free & groups.leads)[order]]", "np.flatnonzero(~free & groups.leads)"),
        "the order of columns decides what is bought",
        (FIXED_SUBSET,),
    ),
    Mutant(
        "a fifth of the examples replaces a pilot",
        "algorithms.comparison.fixed_subset:FixedSubset.fit",
        rewrite("first_phase(SHARE, last)", "first_phase(2 * SHARE, last)"),
        "another first phase than described",
        (FIXED_SUBSET,),
    ),
    # One model from all rows
    Mutant(
        "fit keeps a test part",
        "protocol.configuration:untested",
        rewrite("{'dataset.split': ALL, 'repetitions': 1, 'checkpoints': 1}", "{'repetitions': 1, 'checkpoints': 1}"),
        "rows that could be bought are left out",
        (FIT,),
    ),
    Mutant(
        "the bill forgets what tuning bought",
        BILL,
        rewrite("np.maximum(final + tuning, rows)", "np.maximum(final, rows)"),
        "the model seems cheaper than it was",
        (FIT,),
    ),
    Mutant(
        "cells of full rows are paid for twice",
        BILL,
        rewrite("np.maximum(final + tuning, rows)", "final + tuning + rows"),
        "the model seems more expensive than it was",
        (FIT,),
    ),
    Mutant(
        "a full row is billed for what is free",
        "runs.bill:attributes_paid",
        rewrite("data.get('full_row', data['d'])", "data['d']"),
        "groups count as single attributes",
        (FIT,),
    ),
    # The automatic pilot
    Mutant(
        "an automatic pilot has no floor",
        PILOT,
        rewrite("max(round(_1), _2)", "round(_1)"),
        "the scale of heavy tails comes from a handful of rows",
        (SCALE,),
    ),
    Mutant(
        "an automatic pilot has no ceiling",
        PILOT,
        rewrite("rows * row > LARGEST_SHARE * spent", "False"),
        "a wide table is spent on its scale",
        (SCALE,),
    ),
    Mutant(
        "an automatic pilot may take all complete rows",
        PILOT,
        rewrite("min(rows, self.n_complete // 2)", "rows"),
        "no complete row is left to test on",
        (SCALE,),
    ),
    Mutant(
        "learners that scale what they see buy a pilot, too",
        PILOT,
        rewrite("LEAST_ROWS if _1 else 0", "LEAST_ROWS"),
        "a wide table is spent on what nobody needs",
        (SCALE,),
    ),
    # Totals where values are missing
    Mutant(
        "no reserve for draws that meet more values than expected",
        BOUGHT,
        rewrite("_RESERVE * self.met.deviation", "0.0"),
        "half of the runs pass their total",
        (MISSING_RUNS,),
    ),
    Mutant(
        "a reserve where draws decide anyway",
        BOUGHT,
        rewrite("self.ends_with_money", "False"),
        "runs within a total in money are planned for fewer examples than they see",
        (MISSING_RUNS,),
    ),
    # Plans of draws, and rounds of purchases
    Mutant(
        "phases without the pilot",
        COLLECT,
        rewrite("changes.append(pilot + stop)", "changes.append(stop)"),
        "moments are weighted by draws of other examples",
        (COLLECTION,),
    ),
    Mutant(
        "the last phase ends without the pilot",
        COLLECT,
        rewrite("(*changes, pilot + stop)", "(*changes, stop)"),
        "the last examples are in no phase",
        (COLLECTION,),
    ),
    Mutant(
        "free attributes delay the first plan",
        COLLECT,
        rewrite("draws[0].priced.size", "d"),
        "another first plan than described",
        (COLLECTION,),
    ),
    Mutant(
        "draws are planned again after the last example",
        COLLECT,
        rewrite("first << doublings < last", "first << doublings <= last"),
        "a plan is computed that nobody draws by",
        (COLLECTION,),
    ),
    Mutant(
        "plans until the total is spent",
        ROUNDS,
        rewrite("(1 - _LAST_ROUND) * total", "total"),
        "the best plan, which is the last one, buys next to nothing",
        (CHOOSING_K,),
    ),
    Mutant(
        "the first round pays for the pilot",
        ROUNDS,
        rewrite("self._spent + _1", "_1"),
        "the first plan knows nothing but the pilot",
        (CHOOSING_K,),
    ),
    Mutant(
        "the first round ignores prices",
        ROUNDS,
        rewrite("_VALUES * self._prices.sum()", "_VALUES * len(self._prices)"),
        "the first plan knows too little of expensive attributes",
        (CHOOSING_K,),
    ),
    Mutant(
        "rounds grow threefold",
        ROUNDS,
        rewrite("amount *= 2", "amount *= 3"),
        "fewer plans than described",
        (CHOOSING_K,),
    ),
    Mutant(
        "bought examples are counted without the pilot",
        "revealed.purchases:_Buyer.collected",
        rewrite("(pilot, pilot + examples)", "(pilot, examples)"),
        "the last examples are in no phase",
        (CHOOSING_K,),
    ),
    # How deep examples are filled up
    Mutant(
        "the error of an estimated regressor counts as noise",
        "revealed.information:Criterion.correct",
        rewrite("1 - _NOISES[np.argmin(gaps)] * noise", "1 - noise"),
        "designs are judged by a noise that further values would remove",
        (CELLS,),
    ),
    Mutant(
        "complete rows do not win ties",
        "revealed.cells:_Purchase._least_error",
        rewrite("good[-1] == self._varying.size", "False"),
        "partial examples are bought although they need a covariance that is hardly known",
        (CELLS,),
    ),
    Mutant(
        "each depth is judged by sets of its own",
        DEPTH,
        rewrite("order[:m, :k]", "np.argsort(-self._keys(rng, _SETS), axis=1, kind='stable')[:m, :k]"),
        "chance decides more of the depth than it has to",
        (CELLS,),
    ),
    Mutant(
        "designs are judged by what is drawn least",
        DEPTH,
        rewrite("order[:m, :k]", "order[:m, -k:]"),
        "examples are filled up too far, because their sets seem to show little",
        (CELLS,),
    ),
    Mutant(
        "free attributes show nothing",
        DEPTH,
        rewrite("seen[:, self._offer.prices == 0] = True", "pass"),
        "attributes are bought that free ones predict",
        (CELLS,),
    ),
    Mutant(
        "there are always enough examples",
        DEPTH,
        rewrite("min(units / k, n)", "(units / k)"),
        "few attributes of more examples than there are seem best",
        (CELLS,),
    ),
    Mutant(
        "the smallest of tied depths is the best",
        DEPTH,
        rewrite("good[0] * good[-1]", "good[0] * good[0]"),
        "another depth than described",
        (CELLS,),
    ),
    Mutant(
        "free cells of all examples are taken",
        CHOSEN,
        rewrite("np.flatnonzero(shown)", "np.arange(len(shown))"),
        "an order has examples of which nobody measures anything",
        (CELLS,),
    ),
    Mutant(
        "where nothing has a price nothing is taken",
        CHOSEN,
        rewrite("not self._priced.size", "False"),
        "free values are not seen",
        (CELLS,),
    ),
    Mutant(
        "examples that are complete but for free cells stay so",
        CHOSEN,
        rewrite("shown | _1 | (not self._priced.size)", "shown | (not self._priced.size)"),
        "free values of examples that were paid for are not seen",
        (CELLS,),
    ),
    Mutant(
        "new examples come before those begun",
        PURCHASE,
        rewrite("np.argsort(new, kind='stable')", "np.arange(new.size)"),
        "examples stay incomplete",
        (CELLS,),
    ),
    Mutant(
        "designs ignore the limit per example",
        PURCHASE,
        rewrite("np.minimum(offer.limits, _1)", "_1"),
        "the reason that is given for a depth is wrong",
        (CELLS,),
    ),
    Mutant(
        "cells come in the order of the table",
        CHOSEN,
        rewrite("np.lexsort((attribute, place[example]))", "np.lexsort((attribute, example))"),
        "the preferred examples are not the first of an order",
        (CELLS,),
    ),
    # A study: names, orders, the bill, and files that it writes
    Mutant(
        "a free value that is replaced is charged",
        "study.results:record",
        rewrite("not cell.free", "True"),
        "the bill grows with each correction of what was known beforehand",
        (RESULTS,),
    ),
    Mutant(
        "a repeated order compares the money alone",
        "study.orders:_repeated",
        rewrite("tuple(recorded) != asked", "recorded[0] != asked[0]"),
        "an order with other limits passes for the one that was asked for",
        (RESULTS,),
    ),
    Mutant(
        "an order may cost a little more than the limit",
        "study.orders:_admitted",
        rewrite("float(total) > spend", "float(total) > spend * (1 + 1e-9)"),
        "rounding decides whether the limit holds",
        (RESULTS,),
    ),
    Mutant(
        "a group that is partly delivered is pending, too",
        "study.state:bill_of",
        rewrite("state.by_unit(state.on_order) & ~state.charged", "state.by_unit(state.on_order)"),
        "the price of a panel is on the bill twice",
        (RESULTS,),
    ),
    Mutant(
        "orders below 1 are nobody's",
        "study.results:_order",
        rewrite("number is None or number not in range(1, orders + 1)", "number is not None and number > orders"),
        "a mistyped order is ignored",
        (RESULTS,),
    ),
    Mutant(
        "an order contains every value",
        COSTS,
        rewrite("(result.order, *cell) not in self._ordered", "False"),
        "results of another study's order are taken for those of this one",
        (RESULTS,),
    ),
    Mutant(
        "the cost in a result is ignored",
        COSTS,
        rewrite("any(isclose(result.cost, cost) for cost in costs)", "True"),
        "the bill differs from what the laboratory has charged, and nobody is told",
        (RESULTS,),
    ),
    Mutant(
        "NA names nothing",
        "data.tables:text_of",
        around(lambda text_of, cell: "" if str(cell).strip().lower() in ("na", "none", "nan") else text_of(cell)),
        "sodium is ordered, and its results are refused",
        (NAMES,),
    ),
    Mutant(
        "the only label may be missing",
        "study.examples:_refuse_missing_label",
        around(lambda refuse, *args: None),
        "a target of two labels, one of which is None, has only one",
        (NAMES,),
    ),
    Mutant(
        "the column of names is called as in the table",
        "study:_id_beside",
        around(lambda beside, state, columns: state.facts["id"]),
        "predictions take the place of the names of the examples",
        (NAMES,),
    ),
    Mutant(
        "any file is replaced",
        FOREIGN,
        rewrite("there and (not is_ours(content_of_regular(Path(target))))", "False"),
        "an order that the laboratory has filled in is lost",
        (OUT,),
    ),
    Mutant(
        "inputs are replaced",
        FOREIGN,
        rewrite("map(os.path.realpath, inputs)", "()"),
        "the table that was read is lost",
        (OUT,),
    ),
    Mutant(
        "an order is recorded before its file is looked at",
        "study:Study.place_order",
        rewrite("check(placed)", "None"),
        "values are on order that nobody has seen",
        (OUT,),
    ),
    Mutant(
        "figures replace any file",
        "figures.canvas:_is_ours",
        around(lambda is_ours, pdf: True),
        "somebody's picture beside a study is lost",
        ("tests/figures/test_canvas.py",),
    ),
    # The file of a study
    Mutant(
        "two processes change a study at once",
        "study.file:changing",
        around(lambda changing, path: nullcontext()),
        "what one of two people has recorded is lost",
        (STORE,),
    ),
    Mutant(
        "whoever waited changes the file that was replaced",
        "study.file:changing",
        rewrite("_lock(_1) and os.path.samestat(_2, _3)", "_lock(_1)"),
        "two people hold locks on different files of one name",
        (STORE,),
    ),
    Mutant(
        "a change is reported before it is on the disk",
        "files:write_atomically",
        rewrite("os.fsync(file.fileno())", "None"),
        "what was recorded is lost by a power cut",
        (STORE,),
    ),
    Mutant(
        "a new study replaces one that somebody else makes meanwhile",
        "study.file:create_file",
        rewrite("_write(path, connection, replace=False)", "_write(path, connection, replace=True)"),
        "what somebody else has recorded is lost",
        (STORE,),
    ),
    Mutant(
        "changed files have anybody's permissions",
        "files:_keep_access",
        around(lambda keep_access, descriptor, target: None),
        "anybody may read a study that was private",
        (STORE,),
    ),
    Mutant(
        "logs of a removed study stay",
        "study.file:_write",
        rewrite("log.unlink(missing_ok=True)", "None"),
        "SQLite mixes the orders of a removed study into a new one",
        (STORE,),
    ),
    Mutant(
        "any log belongs to a study of schema 1",
        "study.file:_refuse_changes_in",
        around(lambda refuse, logs, path, content: None),
        "what the log holds is lost, or is that of another study",
        (STORE,),
    ),
    Mutant(
        "a study may have changed outside",
        "study.file:_opened",
        rewrite("digest(content).encode() == seal", "True"),
        "values that nobody measured are learned from",
        (STORE,),
    ),
    Mutant(
        "a study of schema 1 may hold anything",
        "study.file:fault_of_study",
        around(lambda fault_of_study, connection: ""),
        "negative prices and three labels are computed with",
        (STORE,),
    ),
)
