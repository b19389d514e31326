"""The command line: what is printed where, and the exit codes."""

import contextlib
import errno
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hydra.core.plugins import Plugins
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from submitit.core.utils import UncompletedJobError

from budgetreg import __version__
from budgetreg.cli import curves, status
from budgetreg.cli.app import COMMANDS, main
from budgetreg.cli.arguments import OPTIONS
from budgetreg.common.errors import DataError
from budgetreg.common.notices import say
from budgetreg.figures import tables
from budgetreg.protocol.plan import Plan
from budgetreg.runs import runner
from budgetreg.runs.journal import RunStatus
from budgetreg.runs.runner import Choices

NO_CHOICES = Choices("aer", 0, {}, {})


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, and leave the environment as it was."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Replace execution: plans are collected, and their folders look like those of runs."""
    plans: list[Plan] = []

    def execute(plan: Plan, draw: object, later: object) -> runner.RunOutcome:
        plans.append(plan)
        return runner.RunOutcome(plan.folder, finished=plan.config.repetitions, failed=0, resumed=0, choices=NO_CHOICES)

    monkeypatch.setattr(runner, "execute", execute)
    monkeypatch.setattr(tables, "run_table", lambda folder: "the curve")
    return plans


def budgetreg(capsys: pytest.CaptureFixture[str], line: str) -> Answer:
    code = main(shlex.split(line))
    printed = capsys.readouterr()
    return Answer(code, printed.out, printed.err)


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "budgetreg", *words]
    where = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **where, **environment}, check=False, timeout=300
    )


def one_line(text: str) -> str:
    assert text.startswith("budgetreg: ")
    assert text.count("\n") == 1
    return text


@pytest.mark.parametrize(("word", "said"), [("--help", "usage: budgetreg"), ("--version", __version__)])
def test_help_and_version_load_nothing_heavy(word: str, said: str) -> None:
    answer = process(word, PYTHONPROFILEIMPORTTIME="1")
    assert (answer.returncode, said in answer.stdout) == (0, True)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in answer.stderr.splitlines()}
    assert "budgetreg" in loaded
    assert not loaded & {"numpy", "hydra", "omegaconf", "rich", "argparse", "dataclasses", "typing", "re"}


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    answer = budgetreg(capsys, "--help")
    assert all(f"\n  {command} " in answer.out for command in COMMANDS)


@pytest.mark.parametrize("command", ["verify", "status"])
def test_help_of_a_command_loads_no_numpy(command: str) -> None:
    answer = process(command, "--help", PYTHONPROFILEIMPORTTIME="1")
    assert (answer.returncode, f"usage: budgetreg {command}" in answer.stdout) == (0, True)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in answer.stderr.splitlines()}
    assert not loaded & {"numpy", "hydra", "omegaconf"}


def test_status_loads_no_numpy(here: Path) -> None:
    answer = process("status", ".", PYTHONPROFILEIMPORTTIME="1")
    assert (answer.returncode, "holds no run" in answer.stderr) == (3, True)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in answer.stderr.splitlines()}
    assert not loaded & {"numpy", "hydra", "omegaconf"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_version(capsys: pytest.CaptureFixture[str], command: str) -> None:
    for word, said in (("--help", f"usage: budgetreg {command}"), ("--version", f"budgetreg {__version__}")):
        try:
            code: Any = main([command, word])
        except SystemExit as left:  # argparse leaves this way
            code = left.code
        assert not code
        assert capsys.readouterr().out.startswith(said)


@pytest.mark.parametrize("command", ["", *OPTIONS])
def test_help_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):  # by which argparse leaves
        main([*command.split(), "--help"])
    assert not [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("", 2, ", ".join(COMMANDS)),
        (
            "statsu x",
            2,
            f"no such command (did you mean 'status'?); commands: {', '.join(COMMANDS)}",
        ),
        ("list algo", 2, "must be one of algos, datasets, experiments (did you mean 'algos'?)"),
        ("plot", 2, "DIR"),
        ("plot nowhere", 3, "nowhere"),
        ("status", 2, "DIR"),
        ("status nowhere", 3, "nowhere: no such folder"),
        ("status .", 3, "holds no run"),
        ("status . --why", 3, "holds no run"),
        ("verify", 2, "DIR"),
        ("predict nowhere new.csv", 3, "nowhere holds no run"),
        ("verify nowhere", 3, "nowhere: no such folder"),
        ("verify .", 3, "holds neither a run nor merged results"),
        (
            "verify . k=4",
            2,
            "k=4: verify computes results as they were; keys: n_jobs, ",
        ),
        ("verify . n_job=4", 2, "n_job=4: verify computes results as they were (did you mean 'n_jobs'?)"),
        ("verify . n_jobs=0", 2, "n_jobs=0: must be a whole number of at least 1"),
        ("verify . dataset.root=", 2, "dataset.root=: a value is needed"),
        ("verify . --sample 0", 2, "--sample=0: must be a whole number of at least 1"),
        ("verify . --seed x", 2, "--seed=x: must be a whole number of at least 0"),
        ("verify . --seed \u0661", 2, "--seed=\u0661: must be a whole number of at least 0"),
        (f"verify . --seed {'9' * 5000}", 2, "999...: must be a whole number of at least 0"),
        ("run --foo", 2, "--foo"),
        ("run k=[1", 2, "k=[1: is not KEY=VALUE"),
        ("run k", 2, "k: is not KEY=VALUE"),
        ("run algo=aelrr", 2, "algo=aelrr: no such algo (did you mean"),
        (
            "run experiment=hazan_koren_2012/fig3",
            2,
            "no such experiment (did you mean 'hazan_koren_2012/fig2'?); choices: aefa/",
        ),
        ("run kk=4", 2, "kk: no such key (did you mean 'k'?); keys: "),
        ("run dataset=diabetes unit=EUR", 2, "unit: no such key (did you mean 'dataset.unit'?); keys: "),
        (
            "run algo=ridge algo.splt=even",
            2,
            "algo.splt: no such key (did you mean 'algo.split'?); keys: algo.name",
        ),
        ("run split=even", 2, "did you mean 'algo.split'?"),
        ("run dataset.root=there", 2, "dataset.root: no such key; keys: dataset."),
        ("run +learners.aelr=3", 2, "learners.aelr: must be keys of algo"),
        ("run +learners.aelr={split:{x:3}}", 2, "split.x: no such key"),
        ("run k=4,8", 2, "k=4,8: several values"),
        ("run algo=aelr,aer", 2, "several values need run -m (a sweep)\n"),
        ("run algo=ridge checkpoints=[0.001]", 2, "one example of 64 attributes with ridge; give a share of at least"),
        (
            "run dataset=file dataset.path=a(1).csv",
            2,
            "put special characters in quotes: \"dataset.path='a(1).csv'\"",
        ),
        ("run algo=[1]", 2, "algo=[1]: must be the name of one algo; choices: aefa, "),
        ("run algo=[aelr,aer]", 2, "algo=[aelr,aer]: must be the name of one algo; choices: "),
        ("run tuning=[0.1]", 2, "tuning=[0.1]: must be the name of one tuning; choices: cv, fixed, paid, theory"),
        ("run experiment=[1]", 2, "experiment=[1]: must be the name of one experiment"),
        ("run hydra/launcher=[1]", 2, "hydra/launcher=[1]: must be the name of one launcher"),
        ("run algo=a=b", 2, "algo=a=b: is not KEY=VALUE"),
        ("run -m algo=[1],[2]", 2, "algo=[1],[2]: must be the name of one algo"),
        ("run algo=glob(*,exclude=[1]) -m", 2, "cannot be used (TypeError: "),
        ("run hydra.verbose=5", 2, "hydra.verbose=5: cannot be used (AssertionError"),
        ("run hydra.job.env_copy=[NOTHING]", 2, "hydra.job.env_copy=[NOTHING]: cannot be used (KeyError: 'NOTHING')"),
        ("run hydra.sweep.dir=/proc/x -m k=4,5", 2, "hydra.sweep.dir=/proc/x: cannot be used (FileNotFoundError"),
        ("run hydra.launcher._target_=no.such -m k=4,5", 2, "hydra.launcher._target_=no.such: cannot be used"),
        ("run hydra.sweeper.params={k:[4,5]} -m", 2, "hydra.sweeper.params={k:[4,5]}: cannot be used"),
        ("run -m --cfg job", 2, "--cfg"),
        ("run -sc install=nushell", 2, "-sc install=nushell: no such shell; choices: bash, "),
        ("run -sc", 2, "-sc needs install=SHELL"),
        ("run out=/", 2, "out=/: is the root of the file system"),
        ("run out=/tmp/..", 2, "out=/tmp/..: is the root of the file system"),
        ("run -m k=4 out=/", 2, "out=/: is the root of the file system"),
        ("reproduce out=/", 2, "out=/: is the root of the file system"),
        ("fetch", 2, "NAME"),
        ("reproduce out=", 2, "out=: a value is needed"),
        ("run k=0", 2, "k=0: the attribute budget must be a whole number of at least 1 or one of auto, all\n"),
        ("run dataset=file", 2, "dataset.path: a value is needed"),
        ("run hydra/launcher=jobli", 2, "choices: basic"),
        ("run k=${nothing}", 2, "k: Interpolation key 'nothing' not found"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], here: Path, line: str, code: int, said: str) -> None:
    answer = budgetreg(capsys, line)
    assert (answer.code, answer.out) == (code, "")
    assert said in one_line(answer.err)
    assert list(here.iterdir()) == []


def test_a_mistyped_key_lists_each_key_once(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    keys = one_line(budgetreg(capsys, "run kk=4").err).rpartition("keys: ")[2].strip().split(", ")
    assert {"algo", "k", "repetitions"} <= set(keys)
    assert len(keys) == len(set(keys))


def test_list_has_a_row_for_everything(capsys: pytest.CaptureFixture[str]) -> None:
    algos = budgetreg(capsys, "list algos").out
    files = (Path(__file__).parents[2] / "conf" / "algo").glob("*.yaml")
    names = [line.split()[0] for line in algos.splitlines() if not line.startswith("algo=")]
    assert sorted(names) == sorted(path.stem for path in files)
    assert "Hazan & Koren 2012" in algos
    # By task, and within it the papers by year, then ours, then common practice.
    assert names.index("aer") < names.index("ddaerr") < names.index("aemr") < names.index("impute_ridge")
    assert names.index("impute_ridge") < names.index("ridge") < names.index("popca")
    everything = budgetreg(capsys, "list").out
    assert algos in everything
    assert "power_law" in everything
    assert "hazan_koren_2012/fig1" in everything


def test_a_run_prints_its_curve_and_finds_its_folder_again(
    capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan]
) -> None:
    answer = budgetreg(capsys, "run algo=aer k=6 repetitions=3")
    assert (answer.code, answer.err) == (0, "")
    assert "the curve" in answer.out
    budgetreg(capsys, "run algo=aer k=6 repetitions=5 n_jobs=2 backend=sequential")
    assert executed[0].folder == executed[1].folder
    assert executed[0].folder.parent == here / "runs" / "digits_3v5"
    assert executed[0].folder.name.startswith("aer-k6-seed0-")
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert list(here.iterdir()) == []  # Hydra leaves nothing of its own


def test_a_sweep_gives_each_cell_a_folder(capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan]) -> None:
    answer = budgetreg(capsys, "run algo=aelr,aer -m k=4 out=runs/main n_jobs=2")
    assert answer.code == 0
    folders = [here / "runs/main/algo=aelr,k=4", here / "runs/main/algo=aer,k=4"]
    assert [plan.folder for plan in executed] == folders
    assert answer.out.splitlines()[-1] == "merge the curves: budgetreg plot runs/main"
    assert list(here.iterdir()) == []


def test_a_sweep_prints_common_notices_once(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch, executed: list[Plan]
) -> None:
    execute = runner.execute

    def noted(plan: Plan, draw: Any, later: Any) -> runner.RunOutcome:
        say("a note of all")
        say(f"a note of k={plan.config.k}")
        return replace(
            execute(plan, draw=draw, later=later), choices=Choices(plan.config.algo.name, 10, {"B high": 2}, {"eta": 1})
        )

    monkeypatch.setattr(runner, "execute", noted)
    answer = budgetreg(capsys, "run -m algo=aelr,aer k=4,5")
    assert len(executed) == 4
    assert answer.err.splitlines() == [
        *(f"budgetreg: a note of {what}" for what in ("all", "k=4", "k=5")),
        "budgetreg: grids grew because the best value was the largest or smallest tried: aelr: eta in 2 of 20 "
        "repetitions; aer: eta in 2 of 20 repetitions",
        "budgetreg: some best values are the largest or smallest tried: aelr: B high in 4 of 20 repetitions; "
        "aer: B high in 4 of 20 repetitions",
    ]


def test_a_sweep_over_a_group_of_learners(capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan]) -> None:
    assert budgetreg(capsys, "run -m algo=all_full,aer k=4").code == 0
    assert [plan.config.algo.name for plan in executed] == ["lasso", "online_lasso", "online_ridge", "ridge", "aer"]
    answer = budgetreg(capsys, "run algo=all_full k=4")
    assert (answer.code, "several values need run -m (a sweep)\n" in one_line(answer.err)) == (2, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("algo=aemr algo.split=even", "algo.split has no effect on aemr"),
        ("algo=aelr algo.literal_split=half algo.split=even", "algo.literal_split has no effect on aelr"),
        ("algo=aemr algo.average=last tuning.folds=3", "algo.average, tuning.folds have no effect on aemr"),
        ("algo=ridge tuning=fixed tuning.B=1 tuning.eta=1", "tuning.eta has no effect on ridge"),
        ("algo=aelr algo.split=even tuning.folds=3 tuning.at=each n_jobs=2", ""),
        ("algo=ridge tuning=theory tuning.B=1", ""),
        ("-m algo=aemr,aelr algo.split=even", ""),
    ],
)
def test_an_option_without_effect_gives_a_warning_outside_sweeps(
    capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan], line: str, said: str
) -> None:
    answer = budgetreg(capsys, f"run {line}")
    assert (answer.code, answer.err) == (0, f"budgetreg: {said}\n" if said else "")


def test_paths_of_overrides_may_start_with_a_tilde(
    capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = here / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("own", "other"):
        (home / f"{name}.csv").write_text("a,b,y\n" + "".join(f"{i},1,{i}\n" for i in range(20)))
    assert budgetreg(capsys, "run dataset=file dataset.path=~/own.csv out=~/results k=2").code == 0
    assert budgetreg(capsys, "run -m dataset=file dataset.path=~/own.csv,~/other.csv k=2").code == 0
    assert [plan.dataset for plan in executed] == ["own", "own", "other"]
    assert executed[0].folder == home / "results"
    answer = budgetreg(capsys, "run dataset=mnist_3v5 dataset.root=~/nothing")
    assert str(home / "nothing") in one_line(answer.err)
    assert "out=a~b: is not KEY=VALUE" in budgetreg(capsys, "run out=a~b").err


def test_a_recipe_is_a_sweep(capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan]) -> None:
    answer = budgetreg(capsys, "run experiment=hazan_koren_2012/fig2 dataset=digits_3v5 repetitions=2 algo=aerr")
    assert answer.code == 0
    assert [plan.config.algo.name for plan in executed] == ["aerr"]
    assert {(plan.config.k, plan.config.repetitions, plan.dataset) for plan in executed} == {(56, 2, "digits_3v5")}
    assert executed[0].folder.parent == here / "runs/hazan_koren_2012/fig2/digits_3v5"


@pytest.mark.slow
def test_combinations_that_a_recipe_omits_run_only_on_request(
    capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan]
) -> None:
    line = "run experiment=gonen_2016/price algo=popca dataset=coins dataset.n=5000 repetitions=2"
    answer = budgetreg(capsys, line)
    assert (answer.code, len(executed)) == (0, 1)
    assert (executed[0].dataset, executed[0].d) == ("coins_d32_c1_alpha0.6", 32)
    assert answer.err == "budgetreg: left out by the recipe: 3 combinations (omit=[] runs them)\n"
    budgetreg(capsys, f"{line} omit=[]")
    assert len(executed) == 1 + 4


@pytest.mark.parametrize("sweep", ["k=range(0)", "algo=glob(nothing*)"])
def test_a_sweep_without_values_is_a_mistake(capsys: pytest.CaptureFixture[str], here: Path, sweep: str) -> None:
    answer = budgetreg(capsys, f"run -m {sweep} n_jobs=1")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"budgetreg: nothing to run: {sweep} has no value (see budgetreg run --help)\n"


def test_a_launchers_worker_that_dies_is_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_a_worker(*_: object, **__: object) -> None:
        Parallel(n_jobs=2, backend="loky")(delayed(os._exit)(9) for _ in range(2))

    monkeypatch.setattr(Plugins, "instantiate_launcher", in_a_worker)
    answer = budgetreg(capsys, "run -m k=2,4 hydra/launcher=joblib")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("budgetreg: a worker process died")
    assert answer.err.count("\n") == 1


def test_a_full_temporary_folder_is_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    answer = budgetreg(capsys, "run --dry-run -m k=2,4")
    assert (answer.code, answer.err) == (2, "budgetreg: cannot write temporary files: No space left on device\n")


def test_a_sweep_may_set_keys_that_only_its_learners_have(capsys: pytest.CaptureFixture[str]) -> None:
    line = "run --dry-run -m algo=popca,pca algo.n_components=1 dataset=coins k=2 out=there"
    answer = budgetreg(capsys, line)
    assert (answer.code, answer.err) == (0, "")
    assert "there/algo.n_components=1,algo=pca,dataset=coins,k=2" in "".join(answer.out.split())
    answer = budgetreg(capsys, line.replace("pca ", "aelr "))
    assert (answer.code, "algo.n_components: no such key" in one_line(answer.err)) == (2, True)


def test_dry_run_prints_the_bill_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], here: Path, executed: list[Plan]
) -> None:
    answer = budgetreg(capsys, "run --dry-run -m algo=aelr repetitions=3")
    assert (answer.code, answer.err, executed, list(here.iterdir())) == (0, "", [], [])
    assert "(3 for the data point, 1 for the inner product)" in answer.out
    budgetreg(capsys, "run algo=aelr repetitions=3")
    (plan,) = executed
    assert f"at most {3 * (plan.attributes_final + plan.attributes_tuning):,} attributes" in answer.out
    # Folds of 329 examples of 64 attributes: more draws than there are cells, and the held-out ones seen in full.
    assert "at most 1,316 of 21,056" in answer.out
    assert "at most 21,056; the held-out folds, 329 examples in all, are seen in full" in answer.out


def test_exit_code_is_the_worst_of_the_cells(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(plan: Plan, draw: object, later: object) -> runner.RunOutcome:
        if plan.config.k == 2:
            raise DataError("no data\nat all")
        return runner.RunOutcome(plan.folder, finished=0, failed=1, resumed=0, choices=NO_CHOICES)

    monkeypatch.setattr(runner, "execute", execute)
    answer = budgetreg(capsys, "run -m k=2,0")
    assert answer.code == 3
    assert answer.err.splitlines() == [
        "budgetreg: no data at all (in the cell k=2)",
        "budgetreg: k=0: the attribute budget must be a whole number of at least 1 or one of auto, all "
        "(in the cell k=0)",
    ]
    assert budgetreg(capsys, "run k=4").code == 1


def test_a_bug_gives_its_traceback(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(plan: Plan, draw: object, later: object) -> runner.RunOutcome:
        raise ZeroDivisionError("in the core")

    monkeypatch.setattr(runner, "execute", execute)
    answer = budgetreg(capsys, "run")
    assert answer.code == 1
    assert answer.err.startswith("Traceback")
    assert "ZeroDivisionError: in the core" in answer.err


def test_an_interrupt_says_how_to_resume(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(plan: Plan, draw: object, later: object) -> runner.RunOutcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "execute", execute)
    answer = budgetreg(capsys, "run")
    assert answer.code == 130
    assert "the same command resumes" in one_line(answer.err)


@pytest.mark.slow
def test_workers_of_a_launcher_report_to_the_command(here: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    answer = process("run", "-m", "k=0,-1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert [line.partition(": the")[0] for line in answer.stderr.splitlines()] == [
        "budgetreg: k=0",
        "budgetreg: k=-1",
    ]
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["TerminatedWorkerError", "UncompletedJobError"])
def test_a_job_of_a_launcher_that_dies_is_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def launcher(*_: object, **__: object) -> None:
        raise {"TerminatedWorkerError": TerminatedWorkerError, "UncompletedJobError": UncompletedJobError}[name]("dead")

    monkeypatch.setattr(Plugins, "instantiate_launcher", launcher)
    answer = budgetreg(capsys, "run -m k=4,5")
    assert answer.code == 1
    who = "a worker process" if name == "TerminatedWorkerError" else "a job of the launcher"
    assert one_line(answer.err).startswith(f"budgetreg: {who} died")


def test_cfg_prints_the_configuration(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    answer = budgetreg(capsys, "run --cfg job algo=ridge")
    assert (answer.code, answer.err) == (0, "")
    assert "name: ridge" in answer.out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("budgetreg ", list(COMMANDS)),
        ("budgetreg st", ["status", "study"]),
        ("budgetreg study t", ["tell"]),
        ("budgetreg study ask trial.db sp", ["spend="]),
        ("budgetreg study tell trial.db ord", []),
        ("budgetreg run algo=aef", ["algo=aefa", "algo=aefa_streaming"]),
        ("budgetreg run -m --dry-run k=4 algo.sp", ["algo.split="]),
        ("budgetreg run --dr", ["--dry-run"]),
        ("budgetreg run experiment=hazan_koren_2012/f", [f"experiment=hazan_koren_2012/fig{n}" for n in (1, 2)]),
        ("budgetreg run k=[1 algo.sp", []),
        ("budgetreg list a", ["algos"]),
        ("budgetreg fetch mnist_", ["mnist_3v5"]),
        ("budgetreg plot ", []),
        ("budgetreg ver", ["verify"]),
        ("budgetreg verify ", []),
        ("budgetreg predict runs new.csv re", ["repetition="]),
        ("budgetreg verify runs --s", ["--sample", "--seed"]),
        ("budgetreg status --w", ["--why"]),
        ("budgetreg run -m k=4 algo=all_", ["algo=all_budgeted", "algo=all_full", "algo=all_subspaces"]),
        ("budgetreg advise k=2,4,all algo=aelr,ridge dataset=dia", ["dataset=diabetes"]),
        ("budgetreg advise --v", ["--version"]),
        ("budgetreg comp", ["compare"]),
        ("budgetreg compare ", []),
    ],
)
def test_completion_offers_what_can_follow(
    capsys: pytest.CaptureFixture[str],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    words: list[str],
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.delenv("COMP_POINT", raising=False)
    answer = budgetreg(capsys, "-sc query=bash")
    assert (answer.code, answer.out.split(), answer.err) == (0, words, "")


def test_completion_ends_at_the_cursor(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_LINE", "budgetreg li algo=aelr")
    monkeypatch.setenv("COMP_POINT", str(len("budgetreg li")))
    assert budgetreg(capsys, "-sc query=bash").out.split() == ["list"]


def test_completion_is_installed_for_the_command(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/budgetreg"])
    answer = budgetreg(capsys, "run -sc install=bash")
    assert answer.code == 0
    assert answer.out.splitlines()[-1].endswith("-F hydra_bash_completion budgetreg")
    monkeypatch.setattr(sys, "argv", ["/usr/lib/budgetreg/__main__.py"])
    answer = budgetreg(capsys, "run -sc install=bash")
    assert (answer.code, "call budgetreg by that name" in one_line(answer.err)) == (2, True)


def test_status_has_a_row_per_run(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {
        "a": (4, 3, 3, 0, False),
        "b": (8, 3, 1, 2, False),
        "c": (9, 3, 1, 0, False),
        "d": (9, 3, 1, 0, True),
    }
    for name in counts:
        (here / "runs" / name).mkdir(parents=True)
        (here / "runs" / name / "manifest.json").touch()

    def read_status(folder: Path) -> RunStatus:
        if folder.name not in counts:
            return real_status(folder)
        k, planned, finished, failed, running = counts[folder.name]
        unfinished = {number: "no" * (number < finished + failed) for number in range(finished, planned)}
        return RunStatus(folder, planned, unfinished, running, "aelr", "digits_3v5", k)

    real_status = status.read_status
    monkeypatch.setattr(status, "read_status", read_status)
    (here / "runs" / "merged").mkdir()
    (here / "runs" / "merged" / "manifest.json").write_text('{"recipe": "paper/figure", "cells": []}')
    answer = budgetreg(capsys, "status runs")
    assert answer.code == 0
    assert [line.split() for line in answer.out.splitlines()[1:]] == [
        ["runs/a", "aelr", "digits_3v5", "4", "3", "3", "0", "complete"],
        ["runs/b", "aelr", "digits_3v5", "8", "3", "1", "2", "failed"],
        ["runs/c", "aelr", "digits_3v5", "9", "3", "1", "0", "incomplete"],
        ["runs/d", "aelr", "digits_3v5", "9", "3", "1", "0", "running"],
    ]


def test_plot_prints_the_files_that_it_wrote(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "read_series", list)
    monkeypatch.setattr(curves, "plot_figure", lambda folders, out, name: [out / folder.name for folder in folders])
    monkeypatch.setattr(curves, "comparison_tables", lambda folders: ["which is best"])
    answer = Answer(0, "which is best\nfigures/a\nfigures/b\n", "")
    assert budgetreg(capsys, "plot runs/a runs/b --out figures") == answer
    # By default, they go into the only folder, or for several into the working directory.
    assert budgetreg(capsys, "plot runs/a").out == "which is best\nruns/a/a\n"
    assert budgetreg(capsys, "plot runs/a runs/b").out == "which is best\na\nb\n"
