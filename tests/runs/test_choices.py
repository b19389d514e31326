"""Remarks on best values at the end of their grid and on grids that grew: at most one line each; and notices."""

from budgetreg.common.notices import each_once, held, say
from budgetreg.runs.runner import choices_of, remarks
from tests.toy_runs import toy_plan, toy_result


def choices(tmp_path, *repetitions, **config):
    """Return the choices of a run; each repetition gives its edges, its edges before, and the grids that grew."""
    results = [
        {**toy_result(number, edge=edge), "edge_before": before, **({"widened": widened} if widened else {})}
        for number, (edge, before, widened) in enumerate(repetitions)
    ]
    return choices_of(toy_plan(tmp_path, **config), results)


def test_best_values_inside_their_grids_need_no_remark(tmp_path):
    assert remarks([]) == []
    assert remarks([choices(tmp_path, ("", "", ""))]) == []


def test_a_best_value_at_the_end_of_its_grid_comes_with_the_next_value_to_try(tmp_path):
    run = choices(tmp_path, ("B:low eta:high", "B:low", ""), ("B:high", "", ""), ("", "forgetting:high", ""))
    assert remarks([run]) == [
        "some best values are the largest or smallest tried: toy: B largest (try 12 in algo.grid.B) in 1, "
        "B smallest (try 0.333 in algo.grid.B) in 1, eta largest (try 10 in algo.grid.eta) in 1, "
        "forgetting largest before the last checkpoint in 1 of 3 repetitions"
    ]


def test_remarks_count_all_runs_of_a_learner_together(tmp_path):
    runs = [choices(tmp_path, ("B:high", "", "B"), ("", "", "B eta"), algo_name="a", widen=3, k=k) for k in (4, 5)]
    other = choices(tmp_path, ("eta:low", "", ""), algo_name="b")
    assert remarks([*runs, other]) == [
        "grids grew because the best value was the largest or smallest tried: a: B in 4, eta in 2 of 4 repetitions",
        "some best values are the largest or smallest tried: a: B largest (raise tuning.widen, which is 3) in 2 of 4 "
        "repetitions; b: eta smallest (try 0.01 in algo.grid.eta) in 1 of 1 repetitions",
    ]


def test_a_command_prints_each_notice_once_and_the_next_command_prints_it_again(capsys):
    for _ in range(2):
        with each_once():
            say("a\nnote")
            with each_once():
                say("a note")
            say("another")
    say("a note")
    lines = ["budgetreg: a note", "budgetreg: another"]
    assert capsys.readouterr().err.splitlines() == [*lines, *lines, lines[0]]


def test_notices_that_are_held_are_collected_and_not_printed(capsys):
    with held() as notes:
        say("a note")
    assert (notes, capsys.readouterr().err) == (["a note"], "")
    say("a note")
    assert capsys.readouterr().err == "budgetreg: a note\n"
