"""Reasons why a check does not apply, which several families give."""

SEES_ALL = "all attributes are seen, nothing is estimated"
ANY_BUDGET = "k decides how many full rows a run buys, and any k is enough"
ONE_PASS = "each example leads to a step, none to a minimum"
UNBOUNDED = "nothing is clipped or projected on the way"
