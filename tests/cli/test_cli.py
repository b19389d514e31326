"""The command line: what is printed where, and the exit codes."""

import errno
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra.core.plugins import Plugins
from joblib.externals.loky.process_executor import TerminatedWorkerError
from submitit.core.utils import UncompletedJobError

from budgetreg import __version__
from budgetreg.cli import app, curves
from budgetreg.cli.arguments import OPTIONS, STUDY
from budgetreg.common.errors import DataError
from budgetreg.common.notices import say
from budgetreg.figures import tables
from budgetreg.protocol.plan import Plan
from budgetreg.runs import runner
from budgetreg.runs.runner import Choices
from tests.commands import NO_CHOICES, Answer, Call, one_line, process

pytestmark = pytest.mark.usefixtures("here")
HEAVY = {"numpy", "hydra", "omegaconf"}


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Replace execution: plans are collected, and their folders look like those of runs."""
    plans: list[Plan] = []

    def execute(plan: Plan, draw: object) -> runner.RunOutcome:
        plans.append(plan)
        return runner.RunOutcome(plan.folder, finished=plan.config.repetitions, failed=0, resumed=0, choices=NO_CHOICES)

    monkeypatch.setattr(runner, "execute", execute)
    monkeypatch.setattr(tables, "run_table", lambda folder: "the curve")
    return plans


@pytest.mark.parametrize(
    ("words", "code", "said", "heavy"),
    [
        ("--help", 0, "usage: budgetreg", {*HEAVY, "rich", "argparse", "dataclasses", "typing", "re"}),
        ("--version", 0, __version__, {*HEAVY, "rich", "argparse", "dataclasses", "typing", "re"}),
        ("verify --help", 0, "usage: budgetreg verify", HEAVY),
        ("status .", 3, "holds no run", HEAVY),
    ],
)
def test_what_computes_nothing_loads_nothing_heavy(words: str, code: int, said: str, heavy: set[str]) -> None:
    answer = process(*words.split(), PYTHONPROFILEIMPORTTIME="1")
    assert answer.returncode == code
    assert said in answer.stdout + answer.stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in answer.stderr.splitlines()}
    assert "budgetreg" in loaded
    assert not loaded & heavy


@pytest.mark.parametrize("command", ["", *OPTIONS])
def test_help_fits_80_columns(call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call(f"{command} --version").out == f"budgetreg {__version__}\n"
    page = call(f"{command} --help").out
    assert page.startswith(f"usage: budgetreg {command}".rstrip())
    assert max(map(len, page.splitlines())) <= 80
    if command.startswith("study "):
        part = STUDY[command.removeprefix("study ")]
        assert all(key in " ".join(page.split()) for key in (*part.keys, *part.files))


def test_list_has_a_row_for_everything(call: Call) -> None:
    algos = call("list algos").out
    files = (Path(__file__).parents[2] / "conf" / "algo").glob("*.yaml")
    names = [line.split()[0] for line in algos.splitlines() if not line.startswith("algo=")]
    assert sorted(names) == sorted(path.stem for path in files)
    assert "Hazan & Koren 2012" in algos
    # By task, and within it the papers by year, then ours, then common practice.
    assert names.index("aer") < names.index("ddaerr") < names.index("aemr") < names.index("impute_ridge")
    assert names.index("impute_ridge") < names.index("ridge") < names.index("popca")
    everything = call("list").out
    assert algos in everything
    assert "power_law" in everything
    assert "hazan_koren_2012/fig1" in everything


def test_a_run_prints_its_curve_and_finds_its_folder_again(call: Call, here: Path, executed: list[Plan]) -> None:
    answer = call("run algo=aer k=6 repetitions=3")
    assert answer.err == ""
    assert "the curve" in answer.out
    call("run algo=aer k=6 repetitions=5 n_jobs=2 backend=sequential")
    assert executed[0].folder == executed[1].folder
    assert executed[0].folder.parent == here / "runs" / "digits_3v5"
    assert executed[0].folder.name.startswith("aer-k6-seed0-")
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert list(here.iterdir()) == []  # Hydra leaves nothing of its own


def test_a_sweep_gives_each_cell_a_folder(call: Call, here: Path, executed: list[Plan]) -> None:
    answer = call("run algo=aelr,aer -m k=4 out=runs/main n_jobs=2")
    folders = [here / "runs/main/algo=aelr,k=4", here / "runs/main/algo=aer,k=4"]
    assert [plan.folder for plan in executed] == folders
    assert answer.out.splitlines()[-1] == "merge the curves: budgetreg plot runs/main"
    assert list(here.iterdir()) == []


def test_a_sweep_prints_common_notices_once(call: Call, monkeypatch: pytest.MonkeyPatch, executed: list[Plan]) -> None:
    execute = runner.execute

    def noted(plan: Plan, draw: Any) -> runner.RunOutcome:
        say("a note of all")
        say(f"a note of k={plan.config.k}")
        counts = {"edges": Counter({"B high": 2}), "widened": Counter({"eta": 1})}
        return replace(execute(plan, draw=draw), choices=Choices(plan.config.algo.name, 10, counts))

    monkeypatch.setattr(runner, "execute", noted)
    answer = call("run -m algo=aelr,aer k=4,5")
    assert len(executed) == 4
    assert answer.err.splitlines() == [
        *(f"budgetreg: a note of {what}" for what in ("all", "k=4", "k=5")),
        "budgetreg: grids grew because the best value was the largest or smallest tried: aelr: eta in 2 of 20 "
        "repetitions; aer: eta in 2 of 20 repetitions",
        "budgetreg: some best values are the largest or smallest tried: aelr: B high in 4 of 20 repetitions; "
        "aer: B high in 4 of 20 repetitions",
    ]


def test_a_sweep_over_a_group_of_learners(call: Call, executed: list[Plan]) -> None:
    call("run -m algo=all_full,aer k=4")
    assert [plan.config.algo.name for plan in executed] == ["lasso", "online_lasso", "online_ridge", "ridge", "aer"]


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
    call: Call, executed: list[Plan], line: str, said: str
) -> None:
    assert call(f"run {line}").err == (f"budgetreg: {said}\n" if said else "")


def test_paths_of_overrides_may_start_with_a_tilde(
    call: Call, here: Path, executed: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = here / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("own", "other"):
        (home / f"{name}.csv").write_text("a,b,y\n" + "".join(f"{i},1,{i}\n" for i in range(20)))
    call("run dataset=file dataset.path=~/own.csv out=~/results k=2")
    call("run -m dataset=file dataset.path=~/own.csv,~/other.csv k=2")
    assert [plan.dataset for plan in executed] == ["own", "own", "other"]
    assert executed[0].folder == home / "results"
    assert str(home / "nothing") in one_line(call("run dataset=mnist_3v5 dataset.root=~/nothing", 3).err)


def test_a_recipe_is_a_sweep(call: Call, here: Path, executed: list[Plan]) -> None:
    call("run experiment=hazan_koren_2012/fig2 dataset=digits_3v5 repetitions=2 algo=aerr algo.split=literal")
    assert [(plan.config.algo.name, plan.config.algo.split) for plan in executed] == [("aerr", "literal")]
    assert {(plan.config.k, plan.config.repetitions, plan.dataset) for plan in executed} == {(56, 2, "digits_3v5")}
    assert executed[0].folder.parent == here / "runs/hazan_koren_2012/fig2/digits_3v5"


@pytest.mark.slow
def test_combinations_that_a_recipe_omits_run_only_on_request(call: Call, executed: list[Plan]) -> None:
    line = "run experiment=gonen_2016/price algo=popca dataset=coins dataset.n=5000 repetitions=2"
    answer = call(line)
    assert len(executed) == 1
    assert (executed[0].dataset, executed[0].d) == ("coins_d32_c1_alpha0.6", 32)
    assert answer.err == "budgetreg: left out by the recipe: 3 combinations (omit=[] runs them)\n"
    call(f"{line} omit=[]")
    assert len(executed) == 1 + 4


def test_a_full_temporary_folder_is_one_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert call("run --dry-run -m k=2,4", 2).err == "budgetreg: cannot write temporary files: No space left on device\n"


def test_a_sweep_may_set_keys_that_only_its_learners_have(call: Call) -> None:
    line = "run --dry-run -m algo=popca,pca algo.n_components=1 dataset=coins k=2 out=there"
    answer = call(line)
    assert answer.err == ""
    assert "there/algo.n_components=1,algo=pca,dataset=coins,k=2" in "".join(answer.out.split())
    assert "algo.n_components: no such key" in one_line(call(line.replace("pca ", "aelr "), 2).err)


def test_dry_run_prints_the_bill_and_runs_nothing(call: Call, here: Path, executed: list[Plan]) -> None:
    answer = call("run --dry-run -m algo=aelr repetitions=3")
    assert (answer.err, executed, list(here.iterdir())) == ("", [], [])
    assert "(3 for the data point, 1 for the inner product)" in answer.out
    assert "which no budget pays for" in call("run --dry-run algo=aelr dataset.center=full").out
    money = "run --dry-run dataset=diabetes algo=aemr k=auto dataset.costs=bundled total=300 pilot=0"
    assert "final run, in money at most 300 cost units" in " ".join(call(money).out.split())
    call("run algo=aelr repetitions=3")
    (plan,) = executed
    assert f"at most {3 * (plan.attributes_final + plan.attributes_tuning):,} attributes" in answer.out
    # Folds of 329 examples of 64 attributes: more draws than there are cells, and the held-out ones seen in full.
    assert "at most 1,316 of 21,056" in answer.out
    assert "at most 21,056; the held-out folds, 329 examples in all, are seen in full" in answer.out


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataError("no data\nat all"), 3, "budgetreg: no data at all\n"),
        (KeyboardInterrupt(), 130, "budgetreg: interrupted; the same command resumes\n"),
        (ZeroDivisionError("in the core"), 1, "ZeroDivisionError: in the core\n"),
    ],
)
def test_how_a_run_ends_decides_the_exit_code(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    said: str,
) -> None:
    def execute(plan: Plan, draw: object) -> runner.RunOutcome:
        if plan.config.k == 4:
            raise error
        return runner.RunOutcome(plan.folder, finished=0, failed=1, resumed=0, choices=NO_CHOICES)

    monkeypatch.setattr(runner, "execute", execute)
    answer = call("run k=4", code)
    assert said in answer.err
    assert answer.err.startswith("Traceback") == (code == 1)
    assert call("run k=5", 1).err == ""
    if code == 3:
        assert call("run -m k=4,0", 3).err.splitlines() == [
            "budgetreg: no data at all (in the cell k=4)",
            "budgetreg: k=0: the attribute budget must be a whole number of at least 1 or one of auto, all "
            "(in the cell k=0)",
        ]


@pytest.mark.parametrize(
    ("error", "who"),
    [(TerminatedWorkerError("dead"), "a worker process"), (UncompletedJobError("dead"), "a job of the launcher")],
)
def test_a_job_of_a_launcher_that_dies_is_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: Exception, who: str
) -> None:
    def launcher(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Plugins, "instantiate_launcher", launcher)
    assert one_line(call("run -m k=4,5", 1).err).startswith(f"budgetreg: {who} died")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("budgetreg st", ["status", "study"]),
        ("budgetreg li| algo=aelr", ["list"]),
        ("budgetreg study t", ["tell"]),
        ("budgetreg study ask trial.db sp", ["spend="]),
        ("budgetreg study tell trial.db ord", []),
        ("budgetreg run algo=aef", ["algo=aefa", "algo=aefa_streaming"]),
        ("budgetreg run -m --dry-run k=4 algo.sp", ["algo.split="]),
        ("budgetreg run -m k=4 algo=all_", ["algo=all_budgeted", "algo=all_full", "algo=all_subspaces"]),
        ("budgetreg run experiment=hazan_koren_2012/f", [f"experiment=hazan_koren_2012/fig{n}" for n in (1, 2)]),
        ("budgetreg run k=[1 algo.sp", []),
        ("budgetreg list a", ["algos"]),
        ("budgetreg fetch mnist_", ["mnist_3v5"]),
        ("budgetreg plot ", []),
        ("budgetreg predict runs new.csv re", ["repetition="]),
        ("budgetreg verify runs --s", ["--sample", "--seed"]),
        ("budgetreg advise k=2,4,all algo=aelr,ridge dataset=dia", ["dataset=diabetes"]),
    ],
)
def test_completion_offers_what_can_follow(
    call: Call, monkeypatch: pytest.MonkeyPatch, line: str, words: list[str]
) -> None:
    """The cursor is at the end of the line, or at a bar."""
    monkeypatch.setenv("COMP_LINE", line.replace("|", ""))
    monkeypatch.setenv("COMP_POINT", str(len(line.partition("|")[0])))
    answer = call("-sc query=bash")
    assert (answer.out.split(), answer.err) == (words, "")


def test_completion_is_installed_for_the_command(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("run -sc install=bash").out.splitlines()[-1].endswith("-F hydra_bash_completion budgetreg")


def test_plot_prints_the_files_that_it_wrote(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "read_series", list)
    monkeypatch.setattr(curves, "plot_figure", lambda folders, out, name: [out / folder.name for folder in folders])
    monkeypatch.setattr(curves, "comparison_tables", lambda folders: ["which is best"])
    answer = Answer("which is best\nfigures/a\nfigures/b\n", "")
    assert call("plot runs/a runs/b --out figures") == answer
    # By default, they go into the only folder, or for several into the working directory.
    assert call("plot runs/a").out == "which is best\nruns/a/a\n"
    assert call("plot runs/a runs/b").out == "which is best\na\nb\n"


def test_too_little_memory_elsewhere_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*words: object) -> None:
        raise MemoryError("Unable to allocate 16 GiB")

    monkeypatch.setattr(app, "_dispatch", full)
    assert app.main(["predict"]) == 3
    assert capsys.readouterr().err == "budgetreg: not enough memory: Unable to allocate 16 GiB\n"
