"""A month of a laboratory on the command line: orders, invoices, failures, mistakes, and a kill in each command."""

import csv
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from math import fsum
from pathlib import Path

import numpy as np
import pytest

import budgetreg
from budgetreg.cli.app import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_chains", "sketched")]

LIMIT = 120.0
PATIENTS = [f"{at:03}" for at in range(1, 13)]
PRICES = {"ecg": 10.1, "iron": 20.3, "crp": 4.0}
"""By purchase: iron and zinc are bought together."""

Before = Callable[[Path], None]


def write(name: str, *lines: str) -> Before:
    return lambda folder: (folder / name).write_text("\n".join(lines) + "\n") and None


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def value(row: dict[str, str]) -> str:
    return f"{(37 * int(row['example']) + 11 * len(row['attribute'])) % 50 / 10}"


def fill(order: str, results: str, changes: dict[tuple[str, str], dict[str, str]], some: str = "") -> Before:
    """Write the results of an order, of some examples, with some cells changed."""

    def filled(folder: Path) -> None:
        lines = [{**row, "value": value(row)} for row in rows(folder / order) if row["example"] in some or not some]
        for row in lines:
            row |= changes.get((row["example"], row["attribute"]), {})
        with (folder / results).open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)

    return filled


def outcomes(folder: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{name},{30 + at},{rng.normal():.3f}" for at, name in enumerate(PATIENTS)]
    write("patients.csv", "patient,age,outcome", *lines)(folder)
    write("prices.csv", "attribute,cost,group", "ecg,10.1,", "iron,20.3,blood", "zinc,,blood", "crp,4,", "age,0,")(
        folder
    )
    write("ranges.csv", "attribute,low,high", "ecg,0,10")(folder)


INVOICED = {
    ("001", "ecg"): {"cost": "12.5"},  # at another price
    ("002", "ecg"): {"value": "unavailable"},  # a failed test that nobody charges
    ("003", "ecg"): {"value": "unavailable", "cost": "5"},  # one that was charged at half its price
    ("004", "iron"): {"cost": "22", "value": "unavailable"},
}

MONTH: list[tuple[Before | None, str, float]] = [
    (
        outcomes,
        "create t.db table=patients.csv target=outcome id=patient costs=prices.csv unit=EUR ranges=ranges.csv",
        0,
    ),
    (None, "ask t.db spend=1000 order=1 out=one.csv", 0),
    # six patients come back with an invoice: 6 of everything
    (
        fill("one.csv", "week1.csv", INVOICED, "001 002 003 004 005 006"),
        "tell t.db week1.csv",
        6 * fsum(PRICES.values()) + (12.5 - 10.1) - 10.1 + (5 - 10.1) + (22 - 20.3),
    ),
    # the others in the laboratory's own form, without crp, and without the zinc of one
    (
        write(
            "week2.csv",
            "patient;date;zinc;ecg;iron",
            *(
                f"{name};3 May;{'' if name == '010' else f'{at},5'};{at}.25;1,{at}"
                for at, name in enumerate(PATIENTS[6:])
            ),
        ),
        "tell t.db week2.csv decimal=, drop=[date]",
        6 * (10.1 + 20.3),
    ),
    # a value turns out to be wrong; it was paid
    (write("wrong.csv", "example,attribute,value", "005,crp,unavailable"), "tell t.db wrong.csv replace=true", 0),
    # the failed test of patient 002 is on the invoice all the same
    (write("late.csv", "example,attribute,value", "002,ecg,unavailable"), "tell t.db late.csv invoiced=true", 10.1),
    # a credit note
    (write("credit.csv", "example,attribute,value", "003,ecg,unavailable"), "tell t.db credit.csv refund=true", -5),
    # a mistyped invoice is corrected
    (
        write("again.csv", "example,attribute,cost,value", "001,ecg,11.5,4.8"),
        "tell t.db again.csv replace=true",
        11.5 - 12.5,
    ),
    (None, "exclude t.db attribute=crp", 0),
    (None, "exclude t.db example=006", 0),
    (None, "exclude t.db example=[011,012] refund=true", -2 * (10.1 + 20.3)),
    (None, "exclude t.db example=012 undo=true", 0),
    (write("new.csv", "attribute,cost", "ecg,11", "hba1c,7.7"), "add t.db costs=new.csv", 0),
    (write("more.csv", "patient,outcome,hba1c", "013,1.5,5", "004,,6"), "add t.db more.csv", 0),
    (None, "ask t.db spend=1000 order=2 out=two.csv", 0),
    # hba1c of eight patients (not of 004, 006, 011, 013), and ecg and blood of the new one
    (fill("two.csv", "week4.csv", {}), "tell t.db week4.csv", 9 * 7.7 + 11 + 20.3),
    (None, "cancel t.db order=1", 0),
    (None, "show t.db", 0),
    (None, "export t.db out=table.csv", 0),
    (None, "export t.db log=true out=log.csv", 0),
]
"""What happens before each command, the command, and what it charges."""


def forked(words: str, folder: Path, kill_after: float | None = None) -> int:
    """Run a command in a copy of this process, which may be killed after some seconds; return how it ended."""
    child = os.fork()
    if not child:
        code = 99
        try:
            os.chdir(folder)
            with (folder / ".said").open("w", buffering=1) as sys.stdout:
                sys.stderr = sys.stdout
                code = main(["study", *words.split()])
        finally:
            os._exit(code)
    end = time.monotonic() + (LIMIT if kill_after is None else kill_after)
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def said(folder: Path) -> str:
    return (folder / ".said").read_text()


def lived(folder: Path, kill_after: Iterator[float] | None = None) -> tuple[list[float], int]:
    """Live through the month; each command may be killed and given again. Return their times, and how many were hit."""
    bill, seconds, hits = 0.0, [], 0
    for before, words, charge in MONTH:
        if before is not None:
            before(folder)
        if kill_after is not None:
            code = forked(words, folder, next(kill_after))
            assert code in (0, -signal.SIGKILL), said(folder)
            hits += code != 0
        began = time.monotonic()
        assert forked(words, folder) == 0, f"{words}: {said(folder)}"
        seconds.append(time.monotonic() - began)
        bill += charge
        assert budgetreg.Study(folder / "t.db").bill().total == pytest.approx(bill), words
    return seconds, hits


def test_a_month_ends_with_a_log_whose_sum_is_the_bill(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for folder in (undisturbed, killed):
        folder.mkdir()
    seconds, _ = lived(undisturbed)
    # Three of four commands are killed in their first half, so that most are hit even if the machine was busier before.
    shares = np.random.default_rng(0).random(len(seconds)) * np.where(np.arange(len(seconds)) % 4, 0.5, 1.0)
    _, hits = lived(killed, iter((shares * seconds).tolist()))
    assert hits > len(MONTH) / 2
    logs = [rows(folder / "log.csv") for folder in (undisturbed, killed)]
    total = budgetreg.Study(killed / "t.db").bill().total
    assert fsum(float(row["cost"] or 0) for row in logs[1]) == total > 0
    first, second = ([{**row, "time": ""} for row in log] for log in logs)
    assert first == second
    assert {row["event"] for row in first} == {
        *("ask", "tell", "invoice", "refund", "exclude", "include", "price", "attribute", "cancel"),
        *("example", "target", "beforehand"),
    }
    assert (killed / "table.csv").read_bytes() == (undisturbed / "table.csv").read_bytes()
    files = [sorted(path.name for path in folder.iterdir()) for folder in (undisturbed, killed)]
    assert files[0] == files[1]
    assert forked("show t.db", killed) == 0
    shown = said(killed)
    assert shown.startswith("error relative to that of the mean target")
    assert shown.index("if  ") < shown.index("\npaid: ") < shown.index("\nt.db: ") < shown.index("\nattribute ")
