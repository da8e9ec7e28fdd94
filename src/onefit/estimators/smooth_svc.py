"""Smooth support vector classification."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from onefit.estimators.base import MatrixLike
from onefit.estimators.smooth import Part, SmoothMachine
from onefit.kernels import Floats
from onefit.smooth.loss import Loss, SmoothHinge, Squared, SquaredHinge
from onefit.voting import class_values


class SmoothSVC(ClassifierMixin, SmoothMachine):  # type: ignore[misc]
    r"""Smooth support vector classification (SSVM, RSVM, IRSVM) by Newton's method in the primal.

    For two classes it minimises

    .. math:: \tfrac12 (\|w\|^2 + b^2) + \tfrac C2 \sum_i p(1 - y_i f(x_i), \beta)^2

    where f is :math:`w^\top x + b`, or :math:`\sum_j w_j k(z_j, x) + b` with a kernel. The columns
    z are all different training rows, or a reduced set of them. (The penalty is on the coefficients
    and not on :math:`w^\top K w`: any function k will do, and values differ a little from those of
    an SVC.)

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors. ``LinearSVC(C=C/2)`` has the same objective with a linear kernel.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        With "linear" the coefficients are those of the features, unless the kernel is reduced.
    degree, gamma, coef0
        As in :class:`onefit.SVC`. With ``sample_weight``, "scale" weights the rows.
    loss : {"squared_hinge", "squared"}, default="squared_hinge"
        "squared" makes it a least-squares SVM.
    beta : float or None, default=None
        How smooth: the parameter of p. None is its limit, :math:`\max(0, 1 - y f)`.
    reduced : {"random", "incremental"} or None, default=None
        Which rows are columns of the kernel: all that are different; some at random (RSVM); or,
        going through them at random, those that add something (IRSVM).
    n_components : int or "auto", default="auto"
        Size of a random set; "auto" grows with the cube root of the number of rows. The most that
        an incremental one may have.
    threshold : float, default=0.05
        An incremental set takes a row if its kernel column is further than this from the span of
        those it has (root mean square over the rows).
    batch_size : int, default=1
        How many rows are tested at once against those that an incremental set has. 1 is the
        sequential version; larger is faster and may take rows that are like each other.
    failures : int, default=5
        An incremental set is complete when so many rows in succession were too near.
    update : {"auto", "inverse", "dual", "none"}, default="auto"
        How Newton systems follow the support vectors, in a fit and in cross-validation: by the
        Hessian ("inverse", strategy I), by the system of support vectors ("dual", strategy II),
        whichever is cheaper ("auto"), or factorised anew each time ("none"). It never changes the
        answer.
    multi_class : {"ovr", "ovo"}, default="ovr"
        With more than two classes, a function for each against the rest, or for each pair.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class.
    intercept_scaling : float, default=1.0
        The penalty is on b divided by this. Larger penalises the intercept less.
    tol : float, default=1e-8
        Stop when the gradient is shorter than this times the length of the coefficients, or than
        this over that of a row. As the objective is strongly convex, that bounds how far the
        coefficients, and values of rows like these, are from those of the optimum.
    max_iter : int, default=100
        Most Newton steps.
    cache_size : float or "auto", default="auto"
        Most memory for kernel values in MB; "auto" is half of what is free. A reduced kernel that
        does not fit is evaluated in blocks of rows, again for every step.
    warm_start : bool, default=False
        Start from the coefficients of the last fit, if it has the same columns.
    random_state : int, RandomState instance or None, default=None
        Of the order in which rows are drawn. It depends on their content, not on their places.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_functions, n_features)
        With a linear kernel that is not reduced.
    dual_coef_ : ndarray of shape (n_functions, n_components)
        Else: coefficients of the columns.
    component_indices_ : ndarray of shape (n_components,)
        Rows that are columns.
    components_ : {ndarray, sparse matrix} of shape (n_components, n_features)
    intercept_ : ndarray of shape (n_functions,)
    n_iter_ : ndarray of shape (n_functions,)
        Newton steps. There is one function with two classes, or in the order of ``classes_`` or of
        the pairs (0, 1), (0, 2), …, (1, 2), …

    References
    ----------
    Lee & Mangasarian, "SSVM: A smooth support vector machine", 2001. Lee & Mangasarian, "RSVM",
    2001. Lee, Lo & Huang, "Incremental reduced support vector machines", 2003. Tseng & Lee,
    "Rank-r updating techniques for fast exact cross-validation".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefit import SmoothSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = SmoothSVC(reduced="random", n_components=30, random_state=0).fit(X, y)
    >>> len(model.component_indices_)
    30
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SmoothMachine._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "squared"})],
        "multi_class": [StrOptions({"ovr", "ovo"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        loss: str = "squared_hinge",
        beta: float | None = None,
        reduced: str | None = None,
        n_components: int | str = "auto",
        threshold: float = 0.05,
        batch_size: int = 1,
        failures: int = 5,
        update: str = "auto",
        multi_class: str = "ovr",
        class_weight: Any = None,
        intercept_scaling: float = 1.0,
        tol: float = 1e-8,
        max_iter: int = 100,
        cache_size: float | str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
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
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.random_state = random_state

    def _loss(self) -> Loss:
        if self.loss == "squared":
            return Squared()
        return SquaredHinge() if self.beta is None else SmoothHinge(float(self.beta))

    def _parts(self, y: NDArray[Any], weights: Floats | None) -> tuple[list[Part], dict[str, Any]]:
        if y.dtype.kind not in "biuUS":  # whole numbers and strings are classes without a look
            check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        taken = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        present = np.bincount(codes[taken], minlength=len(classes))
        if not present.all():
            raise ValueError(
                "sample_weight leaves no sample of positive weight in class "
                f"{classes[np.argmin(present)]!r}; every class needs at least one."
            )
        of_class = np.ones(len(classes))
        if self.class_weight is not None:
            of_class = compute_class_weight(self.class_weight, classes=classes, y=y)
        if not (of_class > 0).all():
            raise ValueError(
                "The weights in class_weight must be positive; got "
                f"{of_class.tolist()} for the classes {classes.tolist()}."
            )
        c = self.C * of_class[codes] * (1.0 if weights is None else weights)
        parts = [
            Part(rows, np.where(codes[rows] == j, 1.0, -1.0), c[rows], self._key(classes, i, j))
            for rows, i, j in self._sides(codes, taken, len(classes))
        ]
        return parts, {"classes_": classes, "class_weight_": of_class}

    def _sides(
        self, codes: NDArray[np.intp], taken: NDArray[np.intp], n_classes: int
    ) -> list[tuple[NDArray[np.intp], int, int]]:
        """The rows of each function, its negative class (or any) and its positive one."""
        if n_classes == 2:
            return [(taken, 0, 1)]
        if self.multi_class == "ovr":
            return [(taken, k, k) for k in range(n_classes)]
        mine = codes[taken]
        pairs = combinations(range(n_classes), 2)
        return [(taken[(mine == i) | (mine == j)], i, j) for i, j in pairs]

    def _key(self, classes: NDArray[Any], negative: int, positive: int) -> tuple[Any, ...]:
        pair = classes[positive], classes[negative]
        return pair[:1] if self.multi_class == "ovr" else pair

    def decision_function(self, X: MatrixLike) -> Floats:
        """Values of the functions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one value, positive for ``classes_[1]``. With ``multi_class="ovo"`` the
            votes of the pairs, to which their values add less than half a vote.
        """
        return self._decision(self._values(X), len(self.classes_))

    def _decision(self, values: Floats, n_classes: int) -> Floats:
        if n_classes == 2:
            return values[:, 0]
        if self.multi_class == "ovr":
            return values
        return class_values(-values, n_classes)  # here they are positive for the second of a pair

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        values = self._values(X)
        return self._labels(values, self.classes_)

    def _labels(self, values: Floats, classes: NDArray[Any]) -> NDArray[Any]:
        decision = self._decision(values, len(classes))
        codes = (decision > 0).astype(np.intp) if len(classes) == 2 else decision.argmax(axis=1)
        return np.asarray(classes.take(codes))
