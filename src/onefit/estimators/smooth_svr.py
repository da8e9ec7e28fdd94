"""Smooth support vector regression."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from onefit.estimators.base import MatrixLike
from onefit.estimators.smooth import Part, SmoothMachine
from onefit.kernels import Floats
from onefit.smooth.loss import Loss, SmoothTube, Squared, SquaredTube


class SmoothSVR(RegressorMixin, SmoothMachine):  # type: ignore[misc]
    r"""Smooth ε-insensitive support vector regression (ε-SSVR) by Newton's method in the primal.

    It minimises

    .. math:: \tfrac12 (\|w\|^2 + b^2)
        + \tfrac C2 \sum_i \big(|f(x_i) - y_i| - \varepsilon\big)_+^2

    or its smooth form with ``beta``, with the functions f of :class:`SmoothSVC`. The intercept is
    penalised like the coefficients: centre the targets, or give a large ``intercept_scaling``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors.
    epsilon : float, default=0.1
        Half the width of the tube in which errors cost nothing.
    loss : {"squared_epsilon_insensitive", "squared"}, default="squared_epsilon_insensitive"
        "squared" makes it a least-squares SVM: ``epsilon`` is then not used.
    kernel, degree, gamma, coef0, beta, reduced, n_components, threshold, batch_size, failures, \
update, intercept_scaling, tol, max_iter, cache_size, warm_start, random_state
        As in :class:`SmoothSVC`.

    Attributes
    ----------
    coef_, dual_coef_, component_indices_, components_, intercept_, n_iter_
        As in :class:`SmoothSVC`, of one function.

    References
    ----------
    Lee, Hsieh & Huang, "ε-SSVR: A smooth support vector machine for ε-insensitive regression",
    IEEE TKDE 17(5), 2005.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SmoothMachine._parameter_constraints,
        "loss": [StrOptions({"squared_epsilon_insensitive", "squared"})],
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        loss: str = "squared_epsilon_insensitive",
        beta: float | None = None,
        reduced: str | None = None,
        n_components: int | str = "auto",
        threshold: float = 0.05,
        batch_size: int = 1,
        failures: int = 5,
        update: str = "auto",
        intercept_scaling: float = 1.0,
        tol: float = 1e-8,
        max_iter: int = 100,
        cache_size: float | str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.beta = beta
        self.reduced = reduced
        self.n_components = n_components
        self.threshold = threshold
        self.batch_size = batch_size
        self.failures = failures
        self.update = update
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state

    def _loss(self) -> Loss:
        if self.loss == "squared":
            return Squared()
        if self.beta is None:
            return SquaredTube(float(self.epsilon))
        return SmoothTube(float(self.epsilon), float(self.beta))

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        X, y = super()._check_training_data(X, y)
        return X, y.astype(np.float64)

    def _parts(self, y: NDArray[Any], weights: Floats | None) -> tuple[list[Part], dict[str, Any]]:
        taken = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
        c = np.full(len(taken), float(self.C))
        if weights is not None:
            c = c * weights[taken]
        return [Part(taken, y[taken], c)], {}

    def predict(self, X: MatrixLike) -> Floats:
        """Values of the function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        return self._values(X)[:, 0]
