"""A mistake gives one line and an exit code, and leaves nothing behind."""

from pathlib import Path

import numpy as np
import pytest

from budgetreg.cli.app import COMMANDS
from tests.commands import Call, one_line

WHOLE = "must be a whole number of at least"
OWN = "dataset=file dataset.path=own.csv algo=naive k=2 total=40"
TABLES = {
    "hole": "a,b,y\n1,2,3\n1,,3\n4,5,6\n",
    "text": "a,b,y\none,2,3\n1,2,3\n",
    "same": "a,b,y\n1,2,3\n2,2,3\n",
    "own": "a,b,c,y\n" + "".join(f"{a},{b},{c},{y}\n" for a, b, c, y in np.random.default_rng(0).normal(size=(30, 4))),
}
COMMAND_LINES = [
    ("", 2, ", ".join(COMMANDS)),
    ("statsu x", 2, f"no such command (did you mean 'status'?); commands: {', '.join(COMMANDS)}"),
    ("list algo", 2, "must be one of algos, datasets, experiments (did you mean 'algos'?)"),
    ("plot", 2, "DIR"),
    ("plot nowhere", 3, "nowhere"),
    ("status", 2, "DIR"),
    ("status nowhere", 3, "nowhere: no such folder"),
    ("status .", 3, "holds no run"),
    ("status . --why", 3, "holds no run"),
    ("predict nowhere new.csv", 3, "nowhere holds no run"),
    ("verify", 2, "DIR"),
    ("verify nowhere", 3, "nowhere: no such folder"),
    ("verify .", 3, "holds neither a run nor merged results"),
    ("verify . k=4", 2, "k=4: verify computes results as they were; keys: n_jobs, "),
    ("verify . n_job=4", 2, "n_job=4: verify computes results as they were (did you mean 'n_jobs'?)"),
    ("verify . n_jobs=0", 2, f"n_jobs=0: {WHOLE} 1"),
    ("verify . dataset.root=", 2, "dataset.root=: a value is needed"),
    ("verify . n_jobs", 2, "n_jobs: a value is needed: n_jobs=VALUE"),
    ("verify . --sample 0", 2, f"--sample=0: {WHOLE} 1"),
    ("verify . --seed \u0661", 2, f"--seed=\u0661: {WHOLE} 0"),
    (f"verify . --seed {'9' * 5000}", 2, f"999...: {WHOLE} 0"),
    ("reproduce out=/", 2, "out=/: is the root of the file system"),
    ("compare error=0.5", 2, "a folder is needed"),
    ("compare . error=none", 2, "error=none: must be a number above 0"),
    ("compare . error=-1", 2, "error=-1: must be a number above 0"),
    ("compare . error=nan", 2, "error=nan: must be a number above 0"),
    ("compare . error=1_0", 2, "error=1_0: must be a number above 0"),
    ("compare nowhere", 3, "nowhere: no such folder"),
    ("compare . axis=costs", 2, "axis=costs: must be one of attributes, cost (did you mean 'cost'?)"),
    ("fetch", 2, "NAME"),
    ("fetch mnist_3v6", 2, "'mnist_3v6' (did you mean 'mnist_3v5'?); possible: mnist_3v5, mnist"),
    ("fetch power_law", 2, "nothing to fetch for 'power_law'; possible: mnist_3v5, mnist"),
    ("fetch mnist dataset.rot=x", 2, "fetch has no such key (did you mean 'dataset.root'?)"),
    ("fetch mnist --root x", 2, "--help"),
]
WORDS = [
    ("run --foo", 2, "--foo"),
    ("run k=[1", 2, "k=[1: is not KEY=VALUE"),
    ("run k", 2, "k: is not KEY=VALUE"),
    ("run out=a~b", 2, "out=a~b: is not KEY=VALUE"),
    ("run algo=a=b", 2, "algo=a=b: is not KEY=VALUE"),
    ("run dataset=file dataset.path=a(1).csv", 2, "put special characters in quotes: \"dataset.path='a(1).csv'\""),
    ("run algo=aelrr", 2, "algo=aelrr: no such algo (did you mean"),
    ("run experiment=hazan_koren_2012/fig3", 2, "(did you mean 'hazan_koren_2012/fig2'?); choices: aefa/"),
    ("run tuning=honest", 2, "tuning=honest: is now tuning=paid"),
    ("run experiment=aemr/laws", 2, "experiment=aemr/laws: is now experiment=aemr/distributions"),
    ("run kk=4", 2, "kk: no such key (did you mean 'k'?); keys: "),
    ("run dataset=diabetes unit=EUR", 2, "unit: no such key (did you mean 'dataset.unit'?); keys: "),
    ("run algo=ridge algo.splt=even", 2, "algo.splt: no such key (did you mean 'algo.split'?); keys: algo.name"),
    ("run split=even", 2, "did you mean 'algo.split'?"),
    ("run dataset.root=there", 2, "dataset.root: no such key; keys: dataset."),
    ("run +learners.aelr=3", 2, "learners.aelr: must be keys of algo"),
    ("run +learners.aelr={split:{x:3}}", 2, "split.x: no such key"),
    ("run k=4,8", 2, "k=4,8: several values"),
    ("run algo=aelr,aer", 2, "several values need run -m (a sweep)\n"),
    ("run algo=all_full k=4", 2, "several values need run -m (a sweep)\n"),
    ("run algo=[1]", 2, "algo=[1]: must be the name of one algo; choices: aefa, "),
    ("run experiment=[1]", 2, "experiment=[1]: must be the name of one experiment"),
    ("run hydra/launcher=[1]", 2, "hydra/launcher=[1]: must be the name of one launcher"),
    ("run hydra/launcher=jobli", 2, "choices: basic"),
    ("run -m algo=[1],[2]", 2, "algo=[1],[2]: must be the name of one algo"),
    ("run algo=glob(*,exclude=[1]) -m", 2, "cannot be used (TypeError: "),
    ("run -m k=range(0) n_jobs=1", 2, "nothing to run: k=range(0) has no value (see budgetreg run --help)\n"),
    ("run -m algo=glob(nothing*)", 2, "nothing to run: algo=glob(nothing*) has no value (see budgetreg run --help)\n"),
    ("run hydra.verbose=5", 2, "hydra.verbose=5: cannot be used (AssertionError"),
    ("run hydra.job.env_copy=[NOTHING]", 2, "hydra.job.env_copy=[NOTHING]: cannot be used (KeyError: 'NOTHING')"),
    ("run hydra.sweep.dir=/proc/x -m k=4,5", 2, "hydra.sweep.dir=/proc/x: cannot be used (FileNotFoundError"),
    ("run hydra.launcher._target_=no.such -m k=4,5", 2, "hydra.launcher._target_=no.such: cannot be used"),
    ("run hydra.sweeper.params={k:[4,5]} -m", 2, "hydra.sweeper.params={k:[4,5]}: cannot be used"),
    ("run -m --cfg job", 2, "--cfg"),
    ("run -sc install=nushell", 2, "-sc install=nushell: no such shell; choices: bash, "),
    ("run -sc", 2, "-sc needs install=SHELL"),
    ("run out=/tmp/..", 2, "out=/tmp/..: is the root of the file system"),
    ("run -m k=4 out=/", 2, "out=/: is the root of the file system"),
    ("run k=${nothing}", 2, "k: Interpolation key 'nothing' not found"),
]
CHOICES = [
    ("run k=0", 2, "k=0: the attribute budget must be a whole number of at least 1 or one of auto, all\n"),
    pytest.param("run algo=aelr k=100000", 2, "at most d=64", marks=pytest.mark.slow),
    ("run algo=aelr k=1", 2, "k=1: aelr needs a budget of at least 2"),
    ("run algo=aelr k=4 algo.split=4", 2, "between 1 and k-1=3"),
    ("run algo=aelr k=abc", 2, "k=abc"),
    ("run algo=aelr repetitions=0", 2, "repetitions=0"),
    ("run algo=aelr dataset.split=official", 2, "dataset.split"),
    ("run algo=ridge k=1 dataset.test_fraction=0.9", 2, "do not pay for one full row of 64"),
    ("run algo=aelr checkpoints=[10,5000]", 2, "only 329 training examples"),
    ("run algo=ridge checkpoints=[0.001]", 2, "one example of 64 attributes with ridge; give a share of at least"),
    ("run algo=aelr tuning.folds=400", 2, "tuning.folds=400"),
    ("run dataset=mnist_3v5 dataset.root=nowhere", 3, "fetch mnist_3v5 dataset.root="),
    ("run dataset=file", 2, "dataset.path: a value is needed"),
    ("run dataset=file dataset.path=missing.csv", 3, "missing.csv"),
    ("run dataset=file dataset.path=hole.csv", 3, "row 2, column 'b'"),
    ("run dataset=file dataset.path=text.csv", 3, "row 1, column 'a'"),
    ("run dataset=file dataset.path=same.csv", 2, "all 2 targets are 3"),
    ("run dataset=power_law dataset.norm=l3", 2, "norm"),
    ("run dataset=gaussian dataset.rho=1", 2, "neighbouring attributes must be a number above -1 and below 1"),
    ("fit repetitions=2", 2, "repetitions: not for fit, which learns once from all rows"),
    ("fit dataset.test_fraction=0.3", 2, "dataset.test_fraction: not for fit"),
    ("fit seed=1,2", 2, "seed=1,2: one value, as fit learns once from all rows"),
    ("fit experiment=aemr/tables", 2, "not for fit"),
    ("fit algo=popca", 2, "algo=popca: learns a subspace"),
    ("fit kk=1", 2, "kk: no such key"),
    ("advise k=2", 2, "total=T is needed"),
    ("advise totl=100", 2, "totl: no such key (did you mean 'total'?)"),
    ("run dataset=diabetes predict_k=11", 2, "predict_k=11: must be at most d=10, the attributes of diabetes"),
    ("advise total=0", 2, f"total=0: {WHOLE} 1"),
    ("advise total=100 k=2,some", 2, "k=2,some: must be whole numbers of at least 1, or all"),
    (f"advise total=100 k={'9' * 5000}", 2, "999...: must be whole numbers of at least 1, or all"),
    ("advise total=100 algo=popca", 2, "algo=popca: learns a subspace"),
    ("advise total=100 algo=aelrr", 2, "algo=aelrr: no such algo (did you mean 'aerr'?)"),
    ("advise total=100 axis=examples", 2, "axis=examples: not for advise"),
    ("advise total=100 hydra/launcher=joblib", 2, "not for advise"),
    ("advise total=100 dataset.path=a~b", 2, "dataset.path=a~b: is not KEY=VALUE"),
    ("advise total=100 ~dataset", 2, "~dataset: must be KEY=VALUE"),
    ("advise total=3 algo=aelr k=4,8", 2, "total=3: too little for one example of 4 attributes with aelr"),
    ("advise total=100 algo=aelr out=/", 2, "is the root of the file system"),
    ("advise total=100 dataset=file dataset.path=~/no_such.csv", 3, f"{Path.home()}/no_such.csv"),
    *(
        (f'{command} {OWN} "{word}"', 2, f"budgetreg: {said}")
        for command in ("run", "fit")
        for word, said in (
            ("dataset.drop={a: 1}", "dataset.drop: must be a list, not keys with values"),
            ("algo.grid=[1]", "algo.grid: must be keys with values, not a list"),
            ("dataset.target=[y]", 'dataset.target=["y"]: the target must be text, not empty'),
            ("dataset.target=''", "dataset.target=: the target must be text, not empty"),
            ("dataset.path={a: 1}", 'dataset.path={"a":1}: the path must be text, not empty'),
            ("tuning=[cv]", "tuning=[cv]: must be the name of one tuning; choices: cv, fixed, paid, theory"),
        )
    ),
]


@pytest.fixture
def tables(here: Path) -> Path:
    for name, content in TABLES.items():
        (here / f"{name}.csv").write_text(content)
    return here


@pytest.mark.parametrize(("line", "code", "said"), [*COMMAND_LINES, *WORDS, *CHOICES])
def test_a_mistake_is_one_line(call: Call, tables: Path, line: str, code: int, said: str) -> None:
    answer = call(line, code)
    assert answer.out == ""
    assert said in one_line(answer.err)
    assert {path.stem for path in tables.iterdir()} == TABLES.keys()


def test_a_mistyped_key_lists_each_key_once(call: Call, here: Path) -> None:
    keys = one_line(call("run kk=4", 2).err).rpartition("keys: ")[2].strip().split(", ")
    assert {"algo", "k", "repetitions"} <= set(keys)
    assert len(keys) == len(set(keys))
