"""Exact minimisers, projections and eigenspaces: functions of arrays, independent of learners and budgets."""
