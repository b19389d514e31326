"""The contract of `Learner.fit`: what a learner must yield, checked where the protocol and the checks run it."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from budgetreg.algorithms.learner import Fit, Learner, Rngs, SideInformation
from budgetreg.common.errors import ContractError, DataError
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Origin, Outputs, WithIntercept


def run(
    learner: Learner,
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: Rngs,
    given: SideInformation,
    fit: Fit | None = None,
) -> Iterator[tuple[int, np.ndarray, Sequence[Origin]]]:
    """Run a learner and check what it yields; the parameters are those of `Learner.fit`, which `fit` may replace.

    Yields
    ------
    checkpoint : int
        Each of the checkpoints, in order.
    outputs : ndarray of float, shape (F, d, G) or (F, G, d, n)
        Regressors, or orthonormal columns.
    origins : sequence of Origin, length F
        The origin of each stream's regressors. There is neither where no output is wanted.

    Raises
    ------
    ContractError
        If a checkpoint is missing, or outputs have the wrong type or shape, or are not centred as the learner declares.
    DataError
        If outputs are not finite, for every setting of a stream.
    """

    def fail(problem: str) -> ContractError:
        return ContractError(f"{learner.name}: fit of {type(learner).__name__} {problem}")

    due = iter(checkpoints)
    for each in (fit or learner.fit)(accessor, settings, checkpoints, rngs, given):
        if not (isinstance(each, tuple) and len(each) == 2):
            raise fail(f"yields a {type(each).__name__}; yield pairs of a checkpoint and outputs")
        checkpoint, outputs = each
        wanted = next(due, None)
        if checkpoint != wanted:
            expected = "all checkpoints have been yielded" if wanted is None else f"the next checkpoint is {wanted}"
            raise fail(f"yields outputs at {checkpoint} where {expected}; yield once at each checkpoint, in order")
        if given.wanted is not None and not given.wanted[checkpoint]:
            yield checkpoint, np.zeros(0), []
            continue
        problem = _problem(learner, outputs, accessor, given)
        if problem:
            raise fail(f"{problem} (at checkpoint {checkpoint})")
        if not _finite(learner, outputs):
            raise DataError(
                f"{learner.name}: outputs are not finite after {checkpoint} examples: numbers became too large to "
                "compute with; scale the data (dataset.scale=max_abs, a target of about 1), or take smaller parameters"
            )
        if isinstance(outputs, WithIntercept):
            yield checkpoint, outputs.regressors, _origins(outputs)
        else:
            yield checkpoint, outputs, accessor.origins(checkpoint)
    missed = next(due, None)
    if missed is not None:
        raise fail(f"ends without outputs at checkpoint {missed}; yield once at each of {list(checkpoints)}")


def _origins(outputs: WithIntercept) -> list[Origin]:
    """Return the origin of each stream."""
    F = len(outputs.intercept)
    moments, selection = (
        [None if each is None else partial(each, f) for f in range(F)] for each in (outputs.moments, outputs.selection)
    )
    left_out = [None] * F if outputs.left_out is None else list(outputs.left_out)
    return [Origin(None, *parts) for parts in zip(outputs.intercept, moments, left_out, selection, strict=True)]


def _problem(learner: Learner, outputs: object, accessor: Accessor, given: SideInformation) -> str:
    """Return what is wrong with the outputs of a checkpoint and what to do; empty if nothing is."""
    F, G, d = accessor.n_streams, accessor.n_settings, accessor.d
    with_intercept = isinstance(outputs, WithIntercept)
    if with_intercept and not learner.centres_itself:
        return (
            "yields WithIntercept, but the accessor centres its examples: yield the regressors alone, or set "
            "centres_itself = True and centre as given.centred and given.intercept ask"
        )
    if learner.centres_itself and (given.centred or given.intercept) and not with_intercept:
        return (
            "yields no intercept, although its class sets centres_itself: yield WithIntercept(regressors, intercept) "
            "where given.centred or given.intercept is set"
        )
    W = outputs.regressors if isinstance(outputs, WithIntercept) else outputs
    if not (isinstance(W, np.ndarray) and W.dtype.kind == "f"):
        found = f"an array of {W.dtype}" if isinstance(W, np.ndarray) else f"a {type(W).__name__}"
        return f"yields {found}; yield an array of floats"
    if learner.predicts and W.shape != (F, d, G):
        return f"yields regressors of shape {W.shape}; it must be (streams, attributes, settings) = {(F, d, G)}"
    if not learner.predicts and (W.ndim != 4 or W.shape[:3] != (F, G, d)):
        return (
            f"yields subspaces of shape {W.shape}; it must be (streams, settings, attributes, dimensions), "
            f"the first three {(F, G, d)}"
        )
    if isinstance(outputs, WithIntercept) and np.shape(outputs.intercept) != (F, G):
        return f"yields intercepts of shape {np.shape(outputs.intercept)}; it must be (streams, settings) = {(F, G)}"
    return ""


def _finite(learner: Learner, outputs: Outputs) -> bool:
    """Return whether some setting of each stream has finite numbers; one that diverges is never chosen."""
    W, b = outputs[:2] if isinstance(outputs, WithIntercept) else (outputs, 0.0)
    finite = np.isfinite(W).all(axis=1 if learner.predicts else (2, 3)) & np.isfinite(b)
    return bool(finite.any(axis=1).all())
