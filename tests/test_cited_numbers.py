"""Numbers in prose agree with the CSV files that their markers name."""

from pathlib import Path

import check_numbers as numbers
import pytest

ROOT = Path(__file__).resolve().parent.parent
CURVES = """algo,k,repetition,examples,test_relative,cell
aer,4,0,9,0.9,"algo=aer,k=4"
aer,4,0,20,0.5,"algo=aer,k=4"
aer,4,1,9,0.8,"algo=aer,k=4"
aer,4,1,20,0.41,"algo=aer,k=4"
aer,8,0,20,0.25,"algo=aer,k=8"
aelr,4,0,20,0.345,"algo=aelr,k=4"
"""
CLAIMS = "claim,protocol,verdict,estimate\nend,paper,holds,-0.4321\nend,literal,fails,1.5\nlow,paper,holds,8436\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, content in (("curves.csv", CURVES), ("claims.csv", CLAIMS)):
        (tmp_path / "results" / "a" / "b").mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / "a" / "b" / name).write_text(content)
    return tmp_path


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="a source distribution has no results")
def test_the_numbers_of_this_repository_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert numbers.main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("marker", "printed"),
    [
        ("a/b/curves.csv: algo=aer k=4 last test_relative", "0.455"),
        ("a/b/curves.csv: algo=aer k=4 examples=9 test_relative", "0.85"),
        ("a/b/curves.csv: cell='algo=aer,k=8' last test_relative", "0.25"),
        ("a/b/curves.csv: algo=aelr last test_relative", "0.35"),  # half up
        ("a/b/curves.csv: algo=aer max test_relative", "0.900"),
        ("a/b/curves.csv: algo=aer k=4 last test_relative / algo=aer k=8 last test_relative", "1.82"),
        ("a/b/curves.csv: algo=aer k=4 count", "4"),
        ("a/b/claims.csv: claim=end protocol=paper estimate", "-0.43"),
        ("a/b/claims.csv: claim=low estimate", "8,436"),
        ("a/b/claims.csv: claim=low estimate", "8,400"),
        ("a/b/claims.csv: claim=low estimate", "8.4e3"),
        ("a/b/claims.csv: claim=end protocol=literal estimate - claim=end protocol=paper estimate", "1.932"),
        ("a/b/claims.csv: 1 - claim=end protocol=literal estimate", "-0.5"),
        (
            "a/b/claims.csv: claim=end protocol=literal estimate + a/b/curves.csv: cell='algo=aer,k=8' test_relative",
            "1.75",
        ),
    ],
)
def test_a_number_agrees_with_what_its_marker_selects(checkout: Path, marker: str, printed: str) -> None:
    (found,) = numbers.cited(f"It is {printed}<!-- {marker} -->.", checkout)
    assert found.problem == ""
    assert found.true == printed
    last = str((int(printed[-1]) + 5) % 10)
    (other,) = numbers.cited(f"It is {printed[:-1]}{last}<!-- {marker} -->.", checkout)
    assert not other.agrees


@pytest.mark.parametrize(
    ("marker", "problem"),
    [
        ("a/b/curves.csv: algo=aer last test_relative", "3 rows"),
        ("a/b/curves.csv: algo=aerr last test_relative", "no row"),
        ("a/b/curves.csv: algo=aer test_mse", "no column test_mse"),
        ("a/c/curves.csv: algo=aer test_relative", "no file"),
        ("a/b/claims.csv: claim=end protocol=paper verdict", "no number"),
    ],
)
def test_a_marker_that_selects_no_single_number_is_a_problem(checkout: Path, marker: str, problem: str) -> None:
    (found,) = numbers.cited(f"It is 0.5<!-- {marker} -->.", checkout)
    assert not found.agrees
    assert problem in found.problem


@pytest.mark.parametrize("words", ["94 s", "about", "**0.5** or so"])
def test_a_marker_without_a_number_before_it_is_a_problem(
    checkout: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "README.md").write_text(f"It is\n{words}<!-- a/b/curves.csv: algo=aer k=8 last test_relative -->.\n")
    assert numbers.main([], checkout) == 1
    assert "README.md:2: no number stands right before the marker (a/b/curves.csv" in capsys.readouterr().out


def test_a_table_can_be_of_ratios(checkout: Path) -> None:
    marker = "table a/b/curves.csv: algo=aer test_relative / algo=aelr test_relative columns=k"
    table = "| at the end | 4 |\n|---|---|\n| 20<!-- examples=20 --> | 1.32 |\n"
    indented = table.replace("|", "  |", 1).replace("\n|", "\n  |")
    assert [number.agrees for number in numbers.cited(f"- item\n\n  <!-- {marker} -->\n{indented}", checkout)] == [True]
    (found,) = numbers.cited(f"<!-- {marker} -->\n{table}", checkout)
    assert found.agrees  # 0.455 / 0.345


def test_stale_numbers_are_reported_with_their_line_and_fixed(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = checkout / "README.md"
    page.write_text(
        "A share of\n**33.0 %**<!-- a/b/curves.csv: algo=aer k=8 last test_relative --> is left.\n\n"
        "<!-- table a/b/curves.csv: last test_relative rows=algo columns=k -->\n"
        "| | 4 | k = 8 | four<!-- k=4 algo=aelr --> |\n|---|---|---|---|\n| `aer` | 0.455 | .26 | **0.345** |\n"
        "| best | 0.4 `aelr` | | none |\n"
    )
    assert numbers.main([], checkout) == 1
    said = capsys.readouterr().out
    assert "README.md:2: 33.0, but the value is 25.0 (a/b/curves.csv: algo=aer k=8 last test_relative)" in said
    assert "README.md:7: .26, but the value is .25" in said
    assert "README.md:8: 0.4, but the value is 0.3" in said
    assert "README.md:7: 0.345" in said  # its row says aer, its head aelr
    assert "5 marked numbers, 4 wrong" in said
    assert numbers.main(["--fix"], checkout) == 1  # no value is known of the last
    fixed = page.read_text()
    assert "**25.0 %**<!--" in fixed
    assert "| `aer` | 0.455 | .25 | **0.345** |\n| best | 0.3 `aelr` | | none |" in fixed
    capsys.readouterr()
    assert numbers.main([], checkout) == 1
    assert "5 marked numbers, 1 wrong" in capsys.readouterr().out
