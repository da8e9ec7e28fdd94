"""What classifiers share: classes, pairs of them, votes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Hidden, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from onefit import _core, voting
from onefit.estimators.base import KernelMachine, MatrixLike, Model, Part, Training, densify
from onefit.kernels import Floats, Matrix
from onefit.problem import Problem, class_pairs


@dataclass
class ClassTraining(Training):
    """Problems of pairs of classes."""

    classes: NDArray[Any]
    class_weight: Floats
    codes: NDArray[np.intp]  # the number of the class of every row, taking part or not


class KernelClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Base of the classifiers: a two-class problem for each pair of classes, and their votes."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    # What is said when weights leave the rows of one class only.
    _one_class_left = "Invalid input - all samples with positive weights belong to the same class"

    # ---- training -------------------------------------------------------------------------------

    @abstractmethod
    def _bounds(self, class_weight: Floats, weights: Floats) -> Floats:
        """The bound of each row, from the weight of its class and its own."""

    @abstractmethod
    def _pairs(self, starts: list[int], bounds: Floats) -> list[Problem]:
        """A problem for each pair of classes of rows that are sorted by class."""

    def _check_totals(self, totals: Floats) -> None:
        """Checks the weight of all rows of each class, which is positive."""

    def _pair_models(
        self, solutions: list[_core.Solution]
    ) -> tuple[list[Floats], list[float], dict[str, Any]]:
        """Coefficients and intercept of each pair, and other fitted attributes."""
        return [s.beta for s in solutions], [s.offset for s in solutions], {}

    def _training(
        self, y: NDArray[Any], weights: Floats | None, *, every_row: bool = False
    ) -> ClassTraining:
        if self.probability != "deprecated" and self.probability:
            raise ValueError(
                "probability=True is not supported. For probabilities write "
                f"CalibratedClassifierCV({type(self).__name__}(), ensemble=False) "
                "(from sklearn.calibration) instead."
            )
        if y.dtype.kind not in "biuUS":  # whole numbers and strings are classes without a look
            check_classification_targets(y)
        # Sorted by class, the rows of a pair are two runs of every kernel row, which the solver
        # reads in place.
        classes, codes, order, starts = _classes_of(y)
        class_weight = self._class_weights(classes, y)
        if weights is None:
            self._check_totals(np.array(_sizes(starts)))
            row_weights = np.ones(len(y))
        else:
            row_weights = np.maximum(weights, 0.0)[order]
            totals = np.add.reduceat(row_weights, starts[:-1])
            self._check_weights_of_classes(classes, totals)
            if not every_row:
                taken = row_weights > 0
                starts = [0, *np.cumsum(np.add.reduceat(taken, starts[:-1], dtype=int)).tolist()]
                order, row_weights = order[taken], row_weights[taken]
        bounds = self._bounds(class_weight.repeat(_sizes(starts)), row_weights)
        problems = self._pairs(starts, bounds)
        return ClassTraining(problems, order, starts, bounds, classes, class_weight, codes)

    def _part(
        self, whole: Training, y: NDArray[Any], weights: Floats | None, train: NDArray[np.intp]
    ) -> Part:
        assert isinstance(whole, ClassTraining)
        n_classes, starts = len(whole.classes), whole.starts
        counts = np.bincount(whole.codes[train], minlength=n_classes)
        if weights is None and self.class_weight != "balanced" and counts.all():
            # Nothing depends on the fold but who takes part.
            self._check_totals(counts.astype(np.float64))
            taken = np.zeros(len(y), dtype=bool)
            taken[train] = True
            bounds = np.where(taken[whole.order], whole.bounds, 0.0)
            return Part(whole, bounds, range(len(whole.problems)))
        present = np.flatnonzero(counts)
        classes = whole.classes[present]
        class_weight = self._class_weights(classes, y[train])
        row_weights = np.zeros(len(y))
        row_weights[train] = 1.0 if weights is None else np.maximum(weights[train], 0.0)
        row_weights = row_weights[whole.order]
        self._check_weights_of_classes(classes, np.add.reduceat(row_weights, starts[:-1])[present])
        of_class = np.zeros(n_classes)
        of_class[present] = class_weight
        bounds = self._bounds(of_class.repeat(np.diff(starts)), row_weights)
        if len(present) == n_classes:
            training = replace(whole, class_weight=class_weight)
            return Part(training, bounds, range(len(whole.problems)))
        # A class is missing, and with it its rows and pairs.
        order = np.concatenate([whole.order[starts[k] : starts[k + 1]] for k in present])
        sizes = np.diff(starts)[present]
        problems = [
            number
            for number, (i, j) in enumerate(class_pairs(n_classes))
            if i in present and j in present
        ]
        training = replace(
            whole,
            problems=[whole.problems[number] for number in problems],
            order=order,
            starts=[0, *np.cumsum(sizes).tolist()],
            classes=classes,
            class_weight=class_weight,
        )
        return Part(training, bounds, problems)

    def _model(self, training: Training, solutions: list[_core.Solution]) -> Model:
        assert isinstance(training, ClassTraining)
        betas, intercepts, attributes = self._pair_models(solutions)
        n_iter = np.minimum([s.n_iter for s in solutions], np.iinfo(np.int32).max)
        # With two classes scikit-learn turns the sign: positive is classes_[1].
        sign = -1.0 if len(training.classes) == 2 else 1.0
        return Model(
            sign * voting.coefficients(betas, training.starts),
            sign * np.array(intercepts),
            {
                "classes_": training.classes,
                "class_weight_": training.class_weight,
                "n_iter_": n_iter.astype(np.int32),
                **attributes,
            },
            factor=sign / attributes.get("rho_", [1.0])[0],
        )

    def _class_weights(self, classes: NDArray[Any], y: NDArray[Any]) -> Floats:
        """The weights of the classes of these labels."""
        if len(classes) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(classes)} class"
            )
        if self.class_weight is None:
            return np.ones(len(classes))
        weights: Floats = compute_class_weight(self.class_weight, classes=classes, y=y)
        if not (weights > 0).all():
            raise ValueError(
                "The weights in class_weight must be positive; got "
                f"{weights.tolist()} for the classes {classes.tolist()}."
            )
        return weights

    def _check_weights_of_classes(self, classes: NDArray[Any], totals: Floats) -> None:
        """Checks that sample weights leave something of every class, and enough of it."""
        if np.count_nonzero(totals) == 1:
            raise ValueError(self._one_class_left)
        if not totals.all():
            raise ValueError(
                f"sample_weight leaves no sample of positive weight in class "
                f"{classes[np.argmin(totals)]!r}; every class needs at least one."
            )
        self._check_totals(totals)

    # ---- prediction -----------------------------------------------------------------------------

    def _feature_weights(self) -> Matrix:
        weights = voting.pair_weights(self.dual_coef_, self._n_support, self.support_vectors_)
        return sp.vstack(weights).tocsr() if self._sparse else np.vstack(weights)

    def _pair_values(self, X: MatrixLike) -> Floats:
        """Decision values of every pair; positive is the first class, but classes_[1] of two."""
        check_is_fitted(self)
        known = self._known_values(X)
        if known is not None:
            return known
        X = self._check_query(X)
        if not self._sparse and self._n_support.sum() != len(self.support_):
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        dual_coef = densify(self.dual_coef_)
        blocks = [
            voting.pair_values(
                kernel,
                dual_coef,
                self._n_support,
                self.intercept_,
                by_row=self.kernel == "precomputed",  # as in folds
            )
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
        return self._decision_values(self._pair_values(X), len(self.classes_))

    def _decision_values(self, values: Floats, n_classes: int) -> Floats:
        """Values as ``decision_function`` gives them, from those of every pair."""
        if n_classes == 2:
            return values.ravel()
        if self.decision_function_shape == "ovr":
            return voting.class_values(values, n_classes)
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
        self._check_can_predict()
        return self._labels(self._pair_values(X), self.classes_)

    @property
    def _can_predict(self) -> bool:
        """Whether there are rules for labels: ties of votes are broken by values of classes."""
        return not (self.break_ties and self.decision_function_shape == "ovo")

    def _check_can_predict(self) -> None:
        if not self._can_predict:
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")

    def _labels(self, values: Floats, classes: NDArray[Any]) -> NDArray[Any]:
        """Labels from the decision values of every pair."""
        self._check_can_predict()
        if len(classes) == 2:
            codes = (values.ravel() >= 0).astype(np.intp)
        elif self.break_ties:
            codes = np.argmax(voting.class_values(values, len(classes)), axis=1)
        else:
            codes = voting.votes(values, len(classes))
        return np.asarray(classes.take(codes))


def _sizes(starts: list[int]) -> list[int]:
    """Of classes that start there, each to the next."""
    return [last - first for first, last in pairwise(starts)]


def _classes_of(
    y: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp], list[int]]:
    """The classes in their order, the number of each row's, the rows by class, and where these
    start."""
    if y.dtype.kind == "i":  # in the core: on some hundred rows this takes as long as solving
        classes, codes, order, starts = _core.classes_of(y.astype(np.int64, copy=False))
        return classes.astype(y.dtype, copy=False), codes, order, starts
    classes, codes = np.unique(y, return_inverse=True)
    starts = [0, *np.cumsum(np.bincount(codes)).tolist()]
    return classes, codes, np.argsort(codes, kind="stable"), starts
