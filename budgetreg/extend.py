"""All that a learner or a kind of data of another package needs: import from here alone.

A learner is a class derived from `Learner`, a kind of data a `DatasetKind`; entry points of the groups
``budgetreg.learners`` and ``budgetreg.datasets`` name them. ``examples/budgetreg_marginals`` has one of each.
"""

from budgetreg.algorithms.learner import (
    RADIUS,
    STEP_SIZE,
    Batching,
    BudgetSplit,
    Cost,
    Learner,
    Missing,
    Observation,
    Parameter,
    Rngs,
    RunContext,
    Settings,
    SideInformation,
    SplitBudgetLearner,
    SubspaceLearner,
    Theorem,
    Trajectory,
    average_option,
)
from budgetreg.algorithms.tasks import Regression, SubspaceLearning
from budgetreg.algorithms.vectors import Averager, inner_products, project_l2, sum_in_order
from budgetreg.common.errors import ConfigError, DataError
from budgetreg.common.streams import BLOCK, blocks, generator, subset, uniform
from budgetreg.config.options import (
    FLAG,
    FRACTION,
    NOT_NEGATIVE,
    NOTHING,
    NUMBER,
    ONE,
    POSITIVE,
    TEXT,
    ZERO,
    Option,
    Requirement,
    one_of,
    option,
    whole,
)
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import DatasetKind, Distribution, ExampleSource
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Outputs, Table, WithIntercept, sums
from budgetreg.testing import certificates
from budgetreg.testing.certificates import BallOracle, CheckError, LearnerUnderTest, Oracle, close, expect, same
from budgetreg.testing.enumeration import (
    REFERENCE_UPDATES,
    DrawProbabilities,
    GradientOracle,
    Scripted,
    Step,
    compare_moves,
    outcomes,
)
