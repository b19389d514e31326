"""The file of a study: logs beside it, copies, who may write, waiting, odd paths, and changes by other programs."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budgetreg
from budgetreg.cli.app import main
from budgetreg.common.errors import ConfigError, DataError, UserError
from budgetreg.study.error import ErrorEstimate, Estimates, Interval
from budgetreg.study.file import StudyFile

pytestmark = pytest.mark.usefixtures("short_chains")

NAMES = [f"p{number}" for number in range(12)]
SQLITE_LOG = b"\2\2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def created(path: Path, **changes: Any) -> budgetreg.Study:
    groups = {"b": "panel", "c": "panel"}
    options: dict[str, Any] = {"costs": {"a": 1, "b": 2, "c": 2}, "groups": groups, **changes}
    return budgetreg.Study.create(path, examples=NAMES, targets=list(map(float, range(12))), **options)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the file of a study with an order, results and another order."""
    study = created(tmp_path_factory.mktemp("used") / "trial.db")
    order = study.ask(spend=9)
    study.tell(order.assign(value=[float(at + 1) for at in range(len(order))]))
    study.ask(spend=4)
    return study.path.read_bytes()


@pytest.fixture
def used(path: Path, content: bytes) -> budgetreg.Study:
    """Return a study with an order, results and another order."""
    path.write_bytes(content)
    return budgetreg.Study(path)


def told(study: budgetreg.Study, example: str, value: float) -> None:
    study.tell(pd.DataFrame({"example": [example], "attribute": ["a"], "value": [value]}))


def edited(path: Path, *statements: str) -> None:
    """Change a study with SQLite, as another program can, whatever the tables forbid."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)


def as_schema_1(path: Path) -> None:
    """Turn a study into one as SQLite itself wrote it: without a digest, in the mode of a write-ahead log."""
    edited(path, "ALTER TABLE log DROP COLUMN time", "ALTER TABLE log DROP COLUMN cost", "PRAGMA user_version = 1")
    content = bytearray(path.read_bytes())
    content[18:20] = SQLITE_LOG
    path.write_bytes(content[: len(content) // 4096 * 4096])


def in_child(call: Callable[[], object]) -> int:
    """Make a call in a copy of this process that then ends at once; return the process."""
    child = os.fork()
    if not child:
        try:
            call()
        finally:
            os._exit(0)
    return child


def leave_log(path: Path, statement: str, checkpoint: bool = False) -> None:
    """Change a study of schema 1 in a process that leaves its log behind."""

    def change() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(statement)
        if checkpoint:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        os._exit(0)

    os.waitpid(in_child(change), 0)
    assert path.with_name(f"{path.name}-wal").stat().st_size


def change_slowly(path: Path, started: Path, seconds: float) -> None:
    """Change a study as another call of this package does that takes some seconds."""
    study = StudyFile(path)
    with study.writing():
        started.touch()
        time.sleep(seconds)
        study.change("INSERT INTO cells VALUES (5, 0, 'known', 1.0, NULL, 1)")


def change_slowly_by_sqlite(path: Path, started: Path, seconds: float) -> None:
    """Begin to change a study in another program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        started.touch()
        time.sleep(seconds)


@contextmanager
def meanwhile(call: Callable[[Path, Path, float], None], path: Path, seconds: float) -> Iterator[None]:
    """Let another process change a study during the block."""
    started = path.with_name("started")
    child = in_child(lambda: call(path, started, seconds))
    while not started.exists():
        time.sleep(0.01)
    try:
        yield
    finally:
        os.waitpid(child, 0)
        started.unlink()


def commands(folder: Path, *lines: Sequence[bytes], user: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
    """Carry out commands in one process, which ends with the code of the first that fails, or of the last."""
    script = f"""
import os, sys
from budgetreg.algorithms.factors import posterior
from budgetreg.cli.app import main
# as the fixture short_chains
posterior._BURN_IN = posterior._MIN_KEPT = posterior.MOST_KEPT = posterior._MOST_AT_ONCE = 5
for line in {lines!r}:
    if code := main(list(map(os.fsdecode, line))):
        sys.exit(code)
"""
    return subprocess.run(
        [*user, sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, errors="replace", timeout=120
    )


def test_the_file_stays_a_database(path: Path, used: budgetreg.Study) -> None:
    used.add([f"q{number}" for number in range(600)])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(budgetreg.Study(path).state().examples) == 612
    assert [file.name for file in path.parent.iterdir()] == ["trial.db"]


def test_a_copy_has_what_was_reported_and_can_be_restored(path: Path, tmp_path: Path) -> None:
    study, copy = created(path), tmp_path / "copy.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM facts").fetchall()
        told(study, "p3", 1.5)
        shutil.copy(path, copy)
    assert budgetreg.Study(copy).bill().total == 1
    told(study, "p4", 2.5)
    shutil.copy(copy, path)
    assert study.bill().total == budgetreg.Study(path).bill().total == 1
    assert study.table().equals(budgetreg.Study(copy).table())


@pytest.mark.usefixtures("used")
def test_a_log_beside_a_study_is_removed_and_not_read(path: Path) -> None:
    as_schema_1(path)
    leave_log(path, "UPDATE cells SET value = 77 WHERE state = 'known'")
    log = path.with_name("trial.db-wal")
    content = log.read_bytes()
    path.unlink()
    path.with_name("trial.db-journal").write_bytes(b"\xd9\xd5\x05\xf9 of another database")
    study = created(path)
    assert [file.name for file in path.parent.iterdir()] == ["trial.db"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM cells").fetchone() == (0,)
    log.write_bytes(content)
    assert study.bill().total == 0
    told(study, "p3", 1.5)
    assert not log.exists()
    assert budgetreg.Study(path).bill().total == 1


def test_studies_of_schema_1_are_read_and_upgraded(path: Path, used: budgetreg.Study) -> None:
    table = used.table()
    as_schema_1(path)
    before = path.read_bytes()
    study = budgetreg.Study(path)
    pd.testing.assert_frame_equal(study.table(), table)
    assert path.read_bytes() == before
    leave_log(path, "UPDATE log SET old = 1.5 WHERE number = 1", checkpoint=True)
    pd.testing.assert_frame_equal(budgetreg.Study(path).table(), table)
    spent = study.bill().total
    told(study, "p11", 1.5)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    assert budgetreg.Study(path).bill().total == spent + 1
    assert [file.name for file in path.parent.iterdir()] == ["trial.db"]


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.usefixtures("used")
def test_a_log_that_would_change_a_study_of_schema_1_is_refused(path: Path, tmp_path: Path, foreign: bool) -> None:
    as_schema_1(path)
    other = shutil.copy(path, tmp_path / "other.db")
    changed = other if foreign else path
    leave_log(changed, "UPDATE cells SET value = 77 WHERE state = 'known'")
    if foreign:
        shutil.copy(f"{other}-wal", f"{path}-wal")
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"trial.db has a log beside it, trial.db-wal.*, that would change it"):
        budgetreg.Study(path)
    assert path.read_bytes() == before
    assert path.with_name("trial.db-wal").exists()


@pytest.mark.usefixtures("sketched")
def test_any_name_of_a_file_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"d\xff/s\xfe\n.db")
    Path(name).parent.mkdir()
    Path("t.csv").write_text("id,y,a,b\np1,1,,\np2,3,,\n")
    for words in (
        ["create", name, "table=t.csv", "target=y", "id=id"],
        ["ask", name, "spend=2", "out=o\udcff.csv"],
        ["tell", name, "o\udcff.csv"],
        ["export", name, "out=e\udcff.csv"],
        ["show", name],
    ):
        assert main(["study", *words]) == 0
    assert len(budgetreg.Study(name).state().examples) == 2


def test_names_that_no_file_can_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, said in (("x" * 300, "File name too long"), ("x" * 5000, "too long"), ("a\0b", "cannot be the name")):
        for call in (created, budgetreg.Study):
            with pytest.raises(UserError, match=said):
                call(Path(name))
    with pytest.raises(ConfigError, match="cannot be the name of a file"):
        budgetreg.Study("\ud800.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_whoever_may_only_read_sees_everything(tmp_path: Path) -> None:
    folder = tmp_path / "only" / "read"
    folder.mkdir(parents=True)
    study = created(folder / "trial.db")
    (tmp_path / "new.csv").write_text("example,a\nn1,2\n")
    told(study, "p3", 1.5)
    before = study.path.read_bytes()
    folder.chmod(0o555)
    root = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner", "--inh-caps", "-all"]
    name = bytes(study.path)
    done = commands(
        tmp_path,
        [b"study", b"show", name],
        [b"study", b"predict", name, b"new.csv"],
        [b"study", b"export", name, b"out=t.csv"],
        [b"report", name, b"--out", b"page.html"],
        [b"study", b"ask", name, b"spend=2"],
        user=root if os.geteuid() == 0 else (),
    )
    folder.chmod(0o755)
    assert done.returncode == 2, done.stderr
    estimate, figure, asked = done.stderr.splitlines()
    assert estimate.startswith("budgetreg: no estimate of the error")
    assert figure.startswith("budgetreg: no figure: cannot write")
    assert asked.endswith("trial.db: Permission denied")
    assert (tmp_path / "page.html").exists()
    assert study.path.read_bytes() == before


def test_estimates_that_cannot_be_kept_are_returned(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, interval = created(path), Interval(0.5, 0.4, 0.6)
    estimates = Estimates(0.0, ErrorEstimate(interval, interval, 12), [])

    def forbidden(*paths: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("budgetreg.study.estimates_of", lambda state, n_jobs: estimates)
        patch.setattr(os, "replace", forbidden)
        assert study.estimates() == estimates
        assert study.history() == []
        patch.undo()
        patch.setattr("budgetreg.study.estimates_of", lambda state, n_jobs: estimates)
        study.estimates()
    assert budgetreg.Study(path).history() == [estimates]


def test_a_change_keeps_who_may_read(path: Path) -> None:
    study = created(path)
    for mode in (0o600, 0o664):
        path.chmod(mode)
        told(study, f"p{mode % 10}", 1.0)
        assert path.stat().st_mode & 0o777 == mode


def test_a_change_is_on_the_disk_before_it_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = created(path)
    steps: list[str] = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)

        def noted(*arguments: Any, name: str = name, original: Any = original) -> Any:
            steps.append(name)
            return original(*arguments)

        monkeypatch.setattr(os, name, noted)
    told(study, "p3", 1.0)
    assert steps == ["fsync", "replace", "fsync"]  # the content, and then the folder, which has the name


def test_a_study_that_somebody_else_makes_meanwhile_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def late(*arguments: Any, **options: Any) -> sqlite3.Connection:
        path.write_text("theirs")
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", late)
    with pytest.raises(UserError, match="File exists"):
        created(path)
    assert path.read_text() == "theirs"
    assert [file.name for file in path.parent.iterdir()] == ["trial.db"]


def test_two_changes_at_once_are_both_kept(path: Path) -> None:
    study = created(path)
    with meanwhile(change_slowly, path, 0.3):
        assert study.state().known.sum() == 0  # whoever reads waits for nobody
        told(study, "p3", 1.0)
    assert study.state().known.sum() == 2


@pytest.mark.skipif(sys.platform != "linux", reason="the lock is another one there")
def test_the_lock_is_on_the_file_that_has_the_name_now(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process replaces the file between opening and locking it, and a third one changes the new one."""
    study, lock, started = created(path), fcntl.fcntl, path.with_name("started")
    children: list[int] = []

    def late(*arguments: Any) -> Any:
        if not children:
            os.replace(shutil.copy(path, path.with_name("copy.db")), path)
            monkeypatch.setattr(fcntl, "fcntl", lock)
            children.append(in_child(lambda: change_slowly(path, started, 0.3)))
            while not started.exists():
                time.sleep(0.01)
        return lock(*arguments)

    monkeypatch.setattr(fcntl, "fcntl", late)
    told(study, "p3", 1.0)
    os.waitpid(children[0], 0)
    assert study.state().known.sum() == 2


@pytest.mark.parametrize("call", [change_slowly, pytest.param(change_slowly_by_sqlite, marks=pytest.mark.slow)])
def test_waiting_is_reported_and_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: Callable[..., None]
) -> None:
    monkeypatch.setattr("budgetreg.study.file.SILENT", 0.05)
    monkeypatch.setattr("budgetreg.study.file.PATIENCE", 0.2)
    study = created(path)
    with meanwhile(call, path, 0.8):
        with pytest.raises(UserError, match=r"trial.db: another process has been changing it for .* try again later"):
            told(study, "p3", 1.0)
        assert capsys.readouterr().err == f"budgetreg: waiting for another process, which is changing {path}\n"
    told(study, "p3", 1.0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE examples SET target = 7.0 WHERE number = 1",
        "INSERT INTO estimates VALUES (8, 1.0, '{}')",
        "ALTER TABLE cells ADD COLUMN mine",
        "DROP TABLE log",
    ],
)
def test_changes_by_other_programs_are_noticed(path: Path, used: budgetreg.Study, edit: str) -> None:
    edited(path, edit)
    for call in (used.state, used.bill, lambda: used.ask(spend=1), lambda: told(used, "p3", 1.0)):
        with pytest.raises(DataError, match="was changed outside budgetreg: its checksum does not match; use a copy"):
            call()


@pytest.mark.parametrize("at", [40, 4096 + 40, -1])
def test_damage_is_one_line(path: Path, content: bytes, at: int) -> None:
    damaged = bytearray(content)
    damaged[at] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="checksum does not match; use a copy of it"):
        budgetreg.Study(path)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE cells SET example = example + 99 WHERE state = 'known'",
        "UPDATE lines SET attribute = 9 WHERE place = 0",
        "UPDATE cells SET state = 'lost', value = NULL, paid = 0",
        "UPDATE cells SET value = NULL WHERE state = 'known'",
        "DROP TABLE log",
    ],
)
@pytest.mark.usefixtures("used")
def test_a_damaged_study_of_schema_1_is_not_upgraded(path: Path, edit: str) -> None:
    as_schema_1(path)
    edited(path, edit)
    with pytest.raises(DataError, match=r"trial.db is damaged: .*; use a copy of it"):
        budgetreg.Study(path)


def test_numbers_of_other_types_are_recorded_as_numbers(path: Path) -> None:
    study = created(path, seed=np.int64(3))
    study.ask(spend=np.float64(3), per_example=np.int64(1), seed=np.int64(2))
    assert study.bill().on_order > 0
    for limits in ({"per_example": 1.5}, {"seed": -1}, {"per_example": 0}):
        with pytest.raises(ConfigError, match="must be a whole number of at least"):
            study.ask(spend=3, **limits)  # type: ignore[arg-type]
