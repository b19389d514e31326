"""What is told of edges and of grids that grew: one line each, whatever the number of runs."""

from budgetreg.execution.choices import choices_of, remarks
from budgetreg.notices import each_once, held, say
from tests.toy_runs import toy_plan, toy_result


def choices(tmp_path, *told, **config):
    """Return the choices of a run of which each repetition has an edge, one of before, and grids that grew."""
    results = [
        {**toy_result(number, edge=edge), "edge_before": before, **({"widened": widened} if widened else {})}
        for number, (edge, before, widened) in enumerate(told)
    ]
    return choices_of(toy_plan(tmp_path, **config), results)


def test_what_is_not_on_an_edge_is_not_told(tmp_path):
    assert remarks([]) == []
    assert remarks([choices(tmp_path, ("", "", ""))]) == []


def test_each_edge_is_told_with_the_value_to_try(tmp_path):
    run = choices(tmp_path, ("B:low eta:high", "B:low", ""), ("B:high", "", ""), ("", "forgetting:high", ""))
    assert remarks([run]) == [
        "the best value is on an edge of its grid: toy: B high (try 12 in algo.grid.B) in 1, "
        "B low (try 0.333 in algo.grid.B) in 1, eta high (try 10 in algo.grid.eta) in 1, "
        "forgetting high before the last checkpoint in 1 of 3 repetitions"
    ]


def test_runs_of_a_learner_are_told_together(tmp_path):
    runs = [choices(tmp_path, ("B:high", "", "B"), ("", "", "B eta"), algo_name="a", widen=3, k=k) for k in (4, 5)]
    other = choices(tmp_path, ("eta:low", "", ""), algo_name="b")
    assert remarks([*runs, other]) == [
        "grids grew, as the best value was on an edge: a: B in 4, eta in 2 of 4 repetitions",
        "the best value is on an edge of its grid: a: B high (raise tuning.widen, which is 3) in 2 of 4 repetitions; "
        "b: eta low (try 0.01 in algo.grid.eta) in 1 of 1 repetitions",
    ]


def test_a_command_says_nothing_twice_and_the_next_one_says_it_again(capsys):
    for _ in range(2):
        with each_once():
            say("a\nnote")
            with each_once():
                say("a note")
            say("another")
    say("a note")
    told = ["budgetreg: a note", "budgetreg: another"]
    assert capsys.readouterr().err.splitlines() == [*told, *told, told[0]]


def test_what_is_held_is_not_said(capsys):
    with held() as notes:
        say("a note")
    assert (notes, capsys.readouterr().err) == (["a note"], "")
    say("a note")
    assert capsys.readouterr().err == "budgetreg: a note\n"
