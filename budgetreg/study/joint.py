"""The joint model of attributes and target, which predicts incomplete examples and plans purchases."""

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from budgetreg.algorithms.conditional import Conditional, conditional, conditional_means, conditional_variances


@dataclass(frozen=True, eq=False)
class JointModel:
    """Attributes x with a mean and a covariance, and a target ``y = b + <w, x> + e``; all in units of the data.

    Attributes
    ----------
    mean : ndarray of float, shape (d,)
    covariance : ndarray of float, shape (d, d)
        Positive semidefinite.
    w : ndarray of float, shape (d,)
    b : float
    noise : float
        Variance of e, that of the target given all attributes; 0 if fewer than two different targets are known.
    shared : ndarray of float, shape (d,), optional
        Covariance of the attributes with the target, as the values show it. By default the one that `w` implies,
        ``covariance @ w``.
    left_out : tuple of int
        Attributes with weight 0 because the values seen do not show their scale.

    Notes
    -----
    An attribute of which fewer than two different values were seen is independent of all others, and has weight 0. Its
    mean is the value seen, or 0; its variance is what can be expected of an attribute that has shown one value so often
    and no other, see `budgetreg.revealed.columns.variance`. It is above 0, and shrinks as more equal values are
    seen. The unit of an attribute of which nothing was seen is unknown, and taken to be 1.
    """

    mean: np.ndarray
    covariance: np.ndarray
    w: np.ndarray
    b: float
    noise: float
    shared: np.ndarray | None = None
    left_out: tuple[int, ...] = ()

    @property
    def d(self) -> int:
        """Number of attributes."""
        return len(self.w)

    def conditional(self, X: np.ndarray) -> Conditional:
        """Return what is known of examples with holes: expectations by example, covariances by pattern of holes.

        Parameters
        ----------
        X : ndarray of float, shape (n, d) or (d,)
            NaN marks what is unknown.
        """
        return conditional(self.mean, self.covariance, self._checked(X))

    @overload
    def predict(self, X: np.ndarray, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: np.ndarray, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(self, X: np.ndarray, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the expected targets ``b + <w, E[x | what is present]>``.

        Parameters
        ----------
        X : ndarray of float, shape (n, d)
            NaN marks what is unknown.
        return_std : bool
            Whether to return standard deviations too: the root of ``w'V w + noise``, V the covariance of x given what
            is present.

        Returns
        -------
        predictions : ndarray of float, shape (n,)
        deviations : ndarray of float, shape (n,)
            If asked for.
        """
        X = self._checked(X)
        predictions = conditional_means(self.mean, self.covariance, X) @ self.w + self.b
        if not return_std:
            return predictions
        return predictions, np.sqrt(conditional_variances(self.covariance, self.w, X) + self.noise)

    def _checked(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim not in (1, 2) or X.shape[-1] != self.d:
            raise ValueError(f"X has shape {X.shape}; {self.d} attributes in each row are needed")
        return X
