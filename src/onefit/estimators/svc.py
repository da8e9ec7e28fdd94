"""C-support vector classification."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted

from onefit import voting
from onefit.estimators.base import KernelMachine, as_sparse, densify, sparse_class
from onefit.kernels import Floats
from onefit.problem import one_versus_one
from onefit.solver import solve, warn_if_unfinished

MatrixLike: TypeAlias = Any  # an array-like or a sparse matrix of two dimensions


class SVC(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    r"""C-support vector classification: :class:`sklearn.svm.SVC`, faster.

    For each pair of classes it minimises

    .. math:: \tfrac12 \|w\|^2 + \sum_i C_i \max(0, 1 - y_i (w^\top \phi(x_i) + b))

    through its dual. Parameters, fitted attributes and results are those of scikit-learn's class;
    what differs is the time. Kernel rows are evaluated in batches when first needed, shared by all
    pairs, and kept in float32; the solver updates the gradient and picks its next step in one
    vectorised pass; what was accumulated in float32 is computed again in double precision before a
    fit counts as converged.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors, larger is less regularised. Positive.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable takes two sets of rows and returns the matrix of kernel values.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    shrinking : bool, default=True
        Set aside, while solving, variables that stay at their bounds.
    probability : False
        Only False. For probabilities wrap the estimator in
        :class:`sklearn.calibration.CalibratedClassifierCV`.
    tol : float, default=1e-3
        Stop when the KKT gap is below this; LIBSVM's rule.
    cache_size : float or "auto", default="auto"
        Most memory for kernel rows in MB; "auto" is half of what is free. It is taken as it pays:
        a kernel that does not fit, or whose rows are faster to evaluate than memory is to get, is
        kept in part, and the least recently used rows are evaluated again.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class.
    verbose : bool, default=False
        Accepted for compatibility; nothing is ever printed.
    max_iter : int, default=-1
        Limit on the iterations of each pair, -1 for none.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether :meth:`decision_function` gives a value for each class or for each pair.
    break_ties : bool, default=False
        Break ties of the votes by the decision values, with "ovr" and more than two classes.
    random_state : int, RandomState instance or None, default=None
        Accepted for compatibility; nothing here is random.
    n_jobs : int or None, default=None
        Threads for the pairs, and for evaluating kernel rows. They share one store of kernel rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        Factors on C.
    support_ : ndarray of shape (n_SV,)
        Rows that are support vectors, sorted by class.
    support_vectors_ : {ndarray, sparse matrix} of shape (n_SV, n_features)
        Empty with a precomputed or callable kernel.
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : {ndarray, sparse matrix} of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors, in LIBSVM's layout.
    coef_ : {ndarray, sparse matrix} of shape (n_classes * (n_classes - 1) / 2, n_features)
        Weights of the features; "linear" kernel only.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
    fit_status_ : int
        0 when every pair converged, else 1.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Iterations of each pair.
    shape_fit_ : tuple of int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    References
    ----------
    Fan, Chen & Lin, "Working set selection using second order information for training support
    vector machines", JMLR 6, 2005. Chang & Lin, "LIBSVM: a library for support vector machines",
    ACM TIST 2(3), 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefit import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(C=10).fit(StandardScaler().fit_transform(X), y)
    >>> model.n_support_
    array([43, 50], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool | Literal["deprecated"] = "deprecated",
        tol: float = 1e-3,
        cache_size: float | Literal["auto"] = "auto",
        class_weight: dict[Any, float] | str | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVC:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Of shape (n_samples, n_samples) with ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C for each row. A row with a weight of 0 or less takes no part.

        Returns
        -------
        self : SVC
        """
        if self.probability != "deprecated" and self.probability:
            raise ValueError(
                "probability=True is not supported. For probabilities write "
                f"CalibratedClassifierCV({type(self).__name__}(), ensemble=False) "
                "(from sklearn.calibration) instead."
            )
        X, y = self._check_training_data(X, y)
        classes, codes, class_weight = self._check_classes(y)
        weights = self._check_weights(sample_weight, X)
        order, starts = _sort_by_class(classes, codes, weights)
        settings = self._settings()
        kernel = self._resolve_kernel(X)

        # Two classes need all columns of a row; a pair of more needs those of its two classes.
        store = self._store(X, kernel, order, starts[:-1] if len(starts) > 3 else (0,))
        C = self.C * class_weight[codes[order]]
        if weights is not None:
            C *= weights[order]
        solutions = solve(store, one_versus_one(starts, C), settings, forget=True)

        intercept = np.array([s.offset for s in solutions])
        coef = voting.coefficients([s.beta for s in solutions], starts)
        self._check_finite(coef, intercept)
        converged = warn_if_unfinished(solutions, settings)
        # What prediction reads is set only now: a fit that was stopped keeps an earlier one whole.
        self.classes_ = classes
        self.class_weight_ = class_weight
        self.fit_status_ = 0 if converged else 1
        n_iter = [min(s.n_iter, np.iinfo(np.int32).max) for s in solutions]
        self.n_iter_ = np.array(n_iter, dtype=np.int32)
        self._keep_kernel(X, kernel)
        self._keep_support(X, order, starts, coef, intercept)
        return self

    def _check_classes(self, y: Any) -> tuple[NDArray[Any], NDArray[np.intp], Floats]:
        """The classes, the number of each label's class, and the weights of the classes."""
        if y.dtype.kind not in "biuUS":  # whole numbers and strings are classes without a look
            check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        weights = np.ones(len(classes))
        if self.class_weight is not None:
            weights = compute_class_weight(self.class_weight, classes=classes, y=y)
        if not (weights > 0).all():
            raise ValueError(
                "The weights in class_weight must be positive; got "
                f"{weights.tolist()} for the classes {classes.tolist()}."
            )
        return classes, codes, weights

    def _keep_support(
        self,
        X: Any,
        order: NDArray[np.intp],
        starts: list[int],
        coef: Floats,
        intercept: Floats,
    ) -> None:
        """Set the support vectors, their coefficients and the intercepts."""
        support = np.flatnonzero(np.any(coef != 0, axis=0))
        self.support_ = order[support].astype(np.int32)
        if self._kernel_ is None:
            self.support_vectors_ = np.empty((0, 0))
        else:
            vectors = X[self.support_]
            self.support_vectors_ = sparse_class()(vectors) if self._sparse else vectors
        per_class = np.diff(np.searchsorted(support, starts))
        self._n_support = per_class.astype(np.int32)
        # With two classes scikit-learn turns the sign: positive is classes_[1].
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        dual_coef = sign * coef[:, support]
        self.dual_coef_ = as_sparse(dual_coef) if self._sparse else dual_coef
        self.intercept_ = sign * intercept

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        check_is_fitted(self)
        return self._n_support

    @property
    def coef_(self) -> Any:
        """Weights of the features; only with a linear kernel."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        weights = voting.pair_weights(self.dual_coef_, self._n_support, self.support_vectors_)
        if self._sparse:
            coef = sp.vstack(weights).tocsr()
            coef.data.flags.writeable = False
        else:
            coef = np.vstack(weights)
            coef.flags.writeable = False
        return coef

    def _pair_values(self, X: MatrixLike) -> Floats:
        """Decision values of every pair; positive is the first class, but classes_[1] of two."""
        X = self._check_query(X)
        if not self._sparse and self._n_support.sum() != len(self.support_):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        dual_coef = densify(self.dual_coef_)
        blocks = [
            voting.pair_values(kernel, dual_coef, self._n_support, self.intercept_)
            for _, kernel in self._kernel_blocks(X)
        ]
        return np.concatenate(blocks)

    def decision_function(self, X: MatrixLike) -> Floats:
        """Signed distances to the separating surfaces.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            With two classes one value, positive for ``classes_[1]``; else as
            ``decision_function_shape`` says.
        """
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return values.ravel()
        if self.decision_function_shape == "ovr":
            return np.asarray(_ovr_decision_function(values < 0, -values, len(self.classes_)))
        return values

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if len(self.classes_) == 2:
            codes = (self._pair_values(X).ravel() >= 0).astype(np.intp)
        elif self.break_ties:
            codes = np.argmax(self.decision_function(X), axis=1)
        else:
            codes = voting.votes(self._pair_values(X), len(self.classes_))
        return np.asarray(self.classes_.take(codes))


def _sort_by_class(
    classes: NDArray[Any], codes: NDArray[np.intp], weights: Floats | None
) -> tuple[NDArray[np.intp], list[int]]:
    """Rows that take part, sorted by class, and where each class starts among them.

    Sorted, the rows of a pair of classes are two runs of every kernel row, which the solver reads
    in place.
    """
    order = np.argsort(codes, kind="stable")
    if weights is not None:
        order = order[weights[order] > 0]
    sizes = np.bincount(codes[order], minlength=len(classes))
    if np.count_nonzero(sizes) == 1:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class"
        )
    if not sizes.all():
        raise ValueError(
            f"sample_weight leaves no sample of positive weight in class "
            f"{classes[np.argmin(sizes)]!r}; every class needs at least one."
        )
    return order, [0, *np.cumsum(sizes).tolist()]
