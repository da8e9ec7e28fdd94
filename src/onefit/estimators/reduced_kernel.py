"""A reduced kernel as a transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit.estimators.base import MatrixLike
from onefit.estimators.smooth import KERNEL_CONSTRAINTS
from onefit.estimators.smooth_features import Selection, resolved, values_with
from onefit.estimators.validation import QuickParameters, check_sparse
from onefit.kernels import Floats


class ReducedKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, QuickParameters):  # type: ignore[misc]  # fmt: skip
    """Kernel values with a few chosen rows, as features.

    The reduced set of RSVM ("random") or IRSVM ("incremental") for pipelines of your own:
    ``make_pipeline(ReducedKernel(gamma=0.1), LinearSVC())``. ``SmoothSVC(reduced=...)`` chooses the
    same rows, and needs no more memory than its budget.

    Parameters
    ----------
    selection : {"random", "incremental"}, default="random"
    kernel : {"linear", "poly", "rbf", "sigmoid"} or callable, default="rbf"
    degree, gamma, coef0, n_components, threshold, batch_size, failures, random_state
        As in :class:`SmoothSVC`.

    Attributes
    ----------
    component_indices_ : ndarray of shape (n_components,)
        The chosen rows.
    components_ : {ndarray, sparse matrix} of shape (n_components, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import ReducedKernel
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> ReducedKernel(n_components=20, random_state=0).fit_transform(X).shape
    (200, 20)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KERNEL_CONSTRAINTS,
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid"}), callable],
        "selection": [StrOptions({"random", "incremental"})],
    }

    def __init__(
        self,
        *,
        selection: str = "random",
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        n_components: int | str = "auto",
        threshold: float = 0.05,
        batch_size: int = 1,
        failures: int = 5,
        random_state: Any = None,
    ) -> None:
        self.selection = selection
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_components = n_components
        self.threshold = threshold
        self.batch_size = batch_size
        self.failures = failures
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Choose the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
            Not used.

        Returns
        -------
        self : object
        """
        check_sparse(X)
        X = validate_data(self, X, dtype=np.float64, order="C", accept_sparse="csr")
        kernel = resolved(self.kernel, self.gamma, self.coef0, self.degree, X)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        selection = Selection(
            self.selection, self.n_components, self.threshold, self.batch_size, self.failures, seed
        )

        keys = selection.keys(self.kernel, X)
        self.component_indices_ = selection.choose(keys, self.kernel, kernel, X)
        self.components_ = X[self.component_indices_]
        self._kernel_ = kernel
        return self

    def transform(self, X: MatrixLike) -> Floats:
        """Kernel values with the chosen rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        check_sparse(X)
        X = validate_data(self, X, dtype=np.float64, order="C", accept_sparse="csr", reset=False)
        return values_with(self.kernel, self._kernel_, X, self.components_)

    @property
    def _n_features_out(self) -> int:
        return len(self.component_indices_)
