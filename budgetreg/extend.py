"""All that a learner or a kind of data of another package needs: import from here alone.

A learner is a class derived from `Learner`, a kind of data a `DatasetKind`; entry points of the groups
``budgetreg.learners`` and ``budgetreg.datasets`` name them. CONTRIBUTING.md shows one of each.
"""

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
from budgetreg.data.kind import DatasetKind, Distribution, ExampleSource
from budgetreg.enumeration import certificates
from budgetreg.enumeration.certificates import BallOracle
from budgetreg.enumeration.expectations import CheckError, LearnerUnderTest, Oracle, close, expect, same
from budgetreg.enumeration.gradients import DrawProbabilities, GradientOracle, compare_moves
from budgetreg.enumeration.scripted_rng import Scripted, outcomes
from budgetreg.enumeration.steps import Step
from budgetreg.errors import ConfigError, DataError
from budgetreg.learners.bases import SplitBudgetLearner, SubspaceLearner, average_option
from budgetreg.learners.declaration import (
    RADIUS,
    STEP_SIZE,
    Batching,
    Cost,
    Learner,
    Missing,
    Observation,
    Parameter,
    RunContext,
    Theorem,
)
from budgetreg.learners.signature import BudgetSplit, Rngs, Settings, SideInformation, Trajectory
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.centring import sums
from budgetreg.metering.table import Table
from budgetreg.sampling.draws import BLOCK, blocks, subset, uniform
from budgetreg.streams import generator
from budgetreg.tasks import Outputs, Regression, SubspaceLearning, WithIntercept
from budgetreg.updates.averaging import Averager
from budgetreg.updates.dense import inner_products, project_l2, sum_in_order
from budgetreg.updates.reference_updates import REFERENCE_UPDATES
