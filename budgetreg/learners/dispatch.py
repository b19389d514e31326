"""Which module runs a learner: from its configuration to the call of that core."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from budgetreg.learners import exact, partial, two_phase
from budgetreg.metering.accessor import Accessor
from budgetreg.protocol.configuration import AlgoConfig


def fit(
    algo: AlgoConfig,
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: list[np.random.Generator],
    *,
    k: int,
    k_x: int | None,
    k_ip: int | None,
    moments: np.ndarray | None = None,
) -> Iterator[tuple[int, np.ndarray]]:
    """Run a learner of regressors or of subspaces along all streams of the accessor, one pass.

    Parameters
    ----------
    algo : AlgoConfig
        The learner.
    accessor : Accessor
        F streams of examples, G settings.
    settings : mapping of str to ndarray of shape (G,)
        Parameters of the update, in absolute values.
    checkpoints : sequence of int
        Numbers of examples at which the output is wanted, increasing.
    rngs : list of numpy.random.Generator
        One per stream; a learner that sees every attribute draws nothing.
    k : int
        Attribute budget.
    k_x, k_ip : int or None
        Draws for the data point and for the inner product; None for learners that draw for neither.
    moments : ndarray of float, shape (F, d), optional
        Second moments of the attributes, for learners that are given them.

    Yields
    ------
    checkpoint : int
    outputs : ndarray of float, shape (F, d, G) or (F, G, d, n)
        Regressors, or orthonormal columns that span subspaces of n dimensions.
    """
    if algo.n_components is not None:
        return _subspaces(algo, accessor, settings, checkpoints, rngs, k, algo.n_components)
    if algo.core == "offline":
        from budgetreg.learners import offline  # here, as only these learners need scipy, which is slow to load

        return offline.fit(accessor, settings, checkpoints, problem=algo.update)
    if algo.core == "exact":
        return exact.fit(accessor, settings, checkpoints, update=algo.update, average=str(algo.average))
    if algo.core == "pairs":
        from budgetreg.learners import pairs

        return pairs.fit(accessor, settings, checkpoints, rngs, k=k, problem=algo.update)
    assert k_x and k_ip
    if algo.core == "svr":
        from budgetreg.learners import svr  # here, as only this learner needs scipy, which is slow to load

        assert algo.residual and algo.delta is not None and algo.eps
        return svr.fit(
            accessor,
            settings,
            checkpoints,
            rngs,
            residual=algo.residual,
            delta=algo.delta,
            eps=algo.eps,
            k_x=k_x,
            k_ip=k_ip,
            average=str(algo.average),
        )
    assert algo.data_point and algo.inner_product
    if algo.core == "two_phase":
        assert algo.phase_one and algo.smoothing is not None and algo.mix is not None
        return two_phase.fit(
            accessor,
            settings,
            checkpoints,
            rngs,
            update=algo.update,
            inner_product=algo.inner_product,
            k_x=k_x,
            k_ip=k_ip,
            average=str(algo.average),
            phase_one=algo.phase_one,
            smoothing=algo.smoothing,
            mix=algo.mix,
        )
    return partial.fit(
        accessor,
        settings,
        checkpoints,
        rngs,
        update=algo.update,
        data_point=algo.data_point,
        inner_product=algo.inner_product,
        k_x=k_x,
        k_ip=k_ip,
        average=str(algo.average),
        moments=moments,
        control_variate=str(algo.control_variate),
    )


def _subspaces(
    algo: AlgoConfig,
    accessor: Accessor,
    settings: Mapping[str, np.ndarray],
    checkpoints: Sequence[int],
    rngs: list[np.random.Generator],
    k: int,
    n_components: int,
) -> Iterator[tuple[int, np.ndarray]]:
    # Imports are here, as these learners need scipy, which is slow to load.
    if algo.core == "mbeg":
        from budgetreg.learners import mbeg

        assert algo.alpha is not None and algo.output
        return mbeg.fit(
            accessor,
            settings,
            checkpoints,
            rngs,
            k=k,
            n_components=n_components,
            update=algo.update,
            alpha=algo.alpha,
            output=algo.output,
        )
    if algo.core == "streaming":
        from budgetreg.learners import streaming

        return streaming.fit(accessor, settings, checkpoints, rngs, k=k, n_components=n_components, update=algo.update)
    from budgetreg.learners import second_moment

    return second_moment.fit(
        accessor,
        settings,
        checkpoints,
        rngs,
        k=k,
        n_components=n_components,
        update=algo.update,
        replacement=bool(algo.replacement),
        phase_one=algo.phase_one,
        mix=algo.mix,
    )
