"""Groups of learners follow from declarations."""

import pytest

from budgetreg.algorithms.registry import GROUPS, expanded, members
from budgetreg.config import catalogue


def test_every_learner_of_any_data_belongs_to_one_group():
    names = [name for group in GROUPS for name in expanded(group)]
    limited = members(lambda learner: learner.most_attributes is not None)
    assert limited == ["impute_iterative", "normal_ml"]
    assert sorted([*names, *limited]) == catalogue.options("algo")
    assert {"aerr", "aesvr", "naive"} <= set(expanded("all_budgeted"))
    assert expanded("all_full") == ["lasso", "online_lasso", "online_ridge", "ridge"]
    assert {"pca", "popca"} <= set(expanded("all_subspaces"))


def test_groups_and_names_are_merged_in_order():
    assert expanded("ridge,aelr,all_full,aelr") == ["ridge", "aelr", "lasso", "online_lasso", "online_ridge"]


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("# Mine\ndefaults:\n  - aelr\n  - _self_\nname: mine\nsplit: even\n", "all_budgeted"),
        ("# Mine\nname: mine\ncore: offline\nupdate: lasso\n", "all_full"),
    ],
)
def test_learners_of_other_packages_join_groups_by_declaration(tmp_path, monkeypatch, text, group):
    (tmp_path / "algo").mkdir()
    (tmp_path / "algo" / "mine.yaml").write_text(text)
    folders = [catalogue.conf_dir(), tmp_path]
    monkeypatch.setattr(catalogue, "conf_dirs", lambda: folders)
    assert [name for name in GROUPS if "mine" in expanded(name)] == [group]
