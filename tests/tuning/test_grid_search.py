"""A grid search against scikit-learn's: every score of every cell, whatever is shared."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import onefit
from onefit import SVC, SVR, GridSearchCV, NuSVC, NuSVR
from tuning.comparison import TOL, both, check_all_shared, check_same_search

GRID = {"C": [0.1, 1.0, 30.0], "gamma": [0.05, 0.5]}


def classes(n=70, n_classes=2, seed=1):
    return make_classification(
        n,
        5,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=seed,
    )


def numbers(n=60):
    X, y = make_regression(n, 4, noise=5.0, random_state=0)
    return X, y / y.std()


MACHINES = {
    "SVC": (SVC(tol=TOL), GRID),
    "SVC, balanced": (SVC(tol=TOL, class_weight="balanced"), GRID),
    "SVC, weights of classes": (
        SVC(tol=TOL),
        {**GRID, "class_weight": [None, {0: 2.0}, "balanced"]},
    ),
    "SVC, three": (SVC(tol=TOL), GRID),
    "SVC, three, break_ties": (SVC(tol=TOL, break_ties=True), GRID),
    "SVC, three, ovo": (SVC(tol=TOL, decision_function_shape="ovo"), GRID),
    "SVC, not in order": (SVC(tol=TOL), {"gamma": [0.5, 0.05, 0.5], "C": [30.0, 0.1, 1.0, 0.1]}),
    "SVC, kernels": (
        SVC(tol=TOL, gamma=0.2),
        [
            {"kernel": ["linear", "rbf"], "C": [0.1, 3.0]},
            {"kernel": ["sigmoid"], "C": [0.1, 3.0], "gamma": [0.02]},
            {"kernel": ["poly"], "C": [0.1, 3.0], "degree": [2, 3], "coef0": [0.0, 1.0]},
        ],
    ),
    "SVC, scale": (SVC(tol=TOL), {"C": [0.1, 3.0], "gamma": ["scale", "auto", 0.3]}),
    "SVC, tolerances": (SVC(), {"C": [0.1, 3.0], "tol": [TOL, 1e-6], "shrinking": [True, False]}),
    "NuSVC": (NuSVC(tol=1e-9), {"nu": [0.2, 0.5], "gamma": [0.05, 0.5]}),
    "NuSVC, three": (NuSVC(tol=1e-9), {"nu": [0.2, 0.5], "gamma": [0.05, 0.5]}),
    "SVR": (SVR(tol=TOL), {**GRID, "epsilon": [0.0, 0.1, 0.3]}),
    "NuSVR": (NuSVR(tol=1e-9), {**GRID, "nu": [0.3, 0.6]}),
}


def data(name):
    if "R" in name.split(",")[0]:
        return numbers()
    return classes(n_classes=3 if "three" in name else 2)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_scores_are_those_of_scikit_learn(name, n_jobs):
    estimator, grid = MACHINES[name]
    ours, other = both(estimator, grid, *data(name), n_jobs=n_jobs, cv=4, return_train_score=True)
    check_same_search(ours, other)
    check_all_shared(ours)


@pytest.mark.parametrize("name", ["SVC", "SVC, three", "SVR"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, np.float32, "fortran", "frame"])
def test_data_of_all_kinds(name, kind):
    X, y = data(name)
    X[X < -0.5] = 0
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdefgh")[: X.shape[1]])
    elif kind == "fortran":
        X = np.asfortranarray(X)
    else:
        X = X.astype(kind) if kind is np.float32 else kind(X)
    ours, other = both(*MACHINES[name], X, y, cv=3)
    check_same_search(ours, other)
    check_all_shared(ours)
    if kind == "frame":
        assert list(ours.feature_names_in_) == list(X.columns)


@pytest.mark.parametrize("kind", [list, "series", "strings"])
def test_targets_of_all_kinds(kind):
    X, y = classes()
    if kind == "series":
        y = pytest.importorskip("pandas").Series(y)
    else:
        y = list(y) if kind is list else np.array(["no", "yes"])[y]
    ours, other = both(SVC(tol=TOL), GRID, X, y, cv=3)
    check_same_search(ours, other)
    check_all_shared(ours)


@pytest.mark.parametrize("name", ["SVC", "SVC, three", "SVR", "NuSVC", "NuSVR"])
def test_weights_of_rows(name):
    X, y = data(name)
    # Irregular: where all rows are at their bounds the offset is not unique.
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    weights[::9] = 0.0
    ours, other = both(*MACHINES[name], X, y, {"sample_weight": weights}, cv=3)
    check_same_search(ours, other)


@pytest.mark.parametrize("name", ["SVC", "SVC, three", "SVR"])
@pytest.mark.parametrize("kernel", ["precomputed", laplacian_kernel])
def test_given_kernels(name, kernel):
    X, y = data(name)
    estimator = type(MACHINES[name][0])(tol=TOL, kernel=kernel)
    X = rbf_kernel(X, gamma=0.2) if kernel == "precomputed" else X
    ours, other = both(estimator, {"C": [0.1, 1.0, 30.0]}, X, y, cv=3)
    check_same_search(ours, other)
    check_all_shared(ours)


PIPELINES = {
    "machine only": (
        make_pipeline(StandardScaler(), SVC(tol=TOL)),
        {"svc__C": [0.1, 10.0], "svc__gamma": [0.05, "scale"]},
    ),
    "transformers too": (
        Pipeline([("scale", StandardScaler()), ("reduce", PCA()), ("svc", SVC(tol=TOL))]),
        {
            "scale": [StandardScaler(), MinMaxScaler(), "passthrough"],
            "reduce__n_components": [2, 3],
            "svc__C": [0.1, 10.0],
        },
    ),
    "machines as candidates": (
        Pipeline([("scale", StandardScaler()), ("svc", SVC(tol=TOL))]),
        [{"svc": [SVC(tol=TOL, C=3.0), SVC(tol=TOL, gamma=0.1)]}, {"svc__C": [0.3, 3.0]}],
    ),
    "nested": (
        make_pipeline(StandardScaler(), make_pipeline(PCA(3), SVC(tol=TOL))),
        {"pipeline__svc__C": [0.1, 10.0], "pipeline__pca__n_components": [2, 3]},
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pipelines(name, n_classes):
    estimator, grid = PIPELINES[name]
    X, y = classes(n_classes=n_classes)
    ours = GridSearchCV(estimator, grid, cv=3, return_train_score=True).fit(X, y)
    check_all_shared(ours)
    if name == "machines as candidates":  # whose estimators scikit-learn's are not
        for parameters, score in zip(
            ours.cv_results_["params"], ours.cv_results_["split1_test_score"], strict=True
        ):
            train, test = list(StratifiedKFold(3).split(X, y))[1]
            machine = clone(estimator).set_params(**clone(parameters, safe=False))
            assert machine.fit(X[train], y[train]).score(X[test], y[test]) == score
        return
    _, other = both(estimator, grid, X, y, cv=3, return_train_score=True)
    check_same_search(ours, other)


def test_transformers_are_fitted_once_for_each_fold_and_setting():
    class Counted(StandardScaler):
        fits = 0

        def fit(self, X, y=None, sample_weight=None):
            Counted.fits += 1
            return super().fit(X, y, sample_weight)

    X, y = classes()
    pipeline = Pipeline([("scale", Counted()), ("svc", SVC())])
    grid = {"scale__with_mean": [True, False], "svc__C": [1, 2, 3], "svc__gamma": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=4, refit=False).fit(X, y)
    assert Counted.fits == 8 == search.ledger_.transformed


SCORINGS = {
    "classes": [
        "accuracy",
        "balanced_accuracy",
        "f1",
        "roc_auc",
        "average_precision",
        ["accuracy", "f1", "roc_auc"],
        {"a": "accuracy", "own": lambda estimator, X, y: float(len(estimator.support_) > 0)},
    ],
    "numbers": [
        "r2",
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        "neg_mean_absolute_error",
        "neg_median_absolute_error",
        ["r2", "neg_max_error"],
    ],
}


@pytest.mark.parametrize("kind", SCORINGS)
@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_scorers(kind, number, in_pipeline):
    if number >= len(SCORINGS[kind]):
        pytest.skip("no such scorer")
    scoring = SCORINGS[kind][number]
    X, y = classes() if kind == "classes" else numbers()
    estimator = SVC(tol=TOL) if kind == "classes" else SVR(tol=TOL)
    if isinstance(scoring, dict) and in_pipeline:
        scoring = {"a": "accuracy", "own": lambda pipeline, X, y: float(len(pipeline[-1].support_))}
    grid = GRID
    if in_pipeline:
        name = type(estimator).__name__.lower()
        estimator = make_pipeline(StandardScaler(), estimator)
        grid = {f"{name}__{key}": values for key, values in GRID.items()}
    refit = scoring if isinstance(scoring, str) else next(iter(scoring))
    options = {"refit": refit} if not isinstance(scoring, str) else {}
    ours, other = both(
        estimator, grid, X, y, scoring=scoring, cv=3, return_train_score=True, **options
    )
    check_same_search(ours, other)


def test_a_class_that_a_fold_lacks():
    X, y = classes(n_classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    ours, other = both(SVC(tol=TOL), GRID, X, y, cv=KFold(3))
    check_same_search(ours, other)


def test_a_fold_that_cannot_be_fitted():
    X, y = classes()
    rows = np.arange(len(y))
    splits = [(rows[y == 0][:9], rows[:10]), (rows[20:], rows[:20])]
    with pytest.warns(match="fits failed"):
        ours, other = both(SVC(tol=TOL), GRID, X, y, cv=splits, error_score=-1.0)
    check_same_search(ours, other)
    with pytest.raises(ValueError, match="number of classes"):
        GridSearchCV(SVC(), GRID, cv=splits, error_score="raise").fit(X, y)


def test_candidates_that_are_not_valid():
    X, y = classes()
    grid = {"C": [1.0, -1.0, np.inf], "gamma": [0.1]}
    with pytest.warns(match="fits failed"):
        ours, other = both(SVC(tol=1e-4), grid, X, y, cv=3)
    check_same_search(ours, other, atol=0.05)
    with pytest.raises(ValueError, match="Invalid parameter 'D'"):
        GridSearchCV(SVC(), {"D": [1.0]}).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_candidates_that_cannot_predict(n_classes, scoring):
    X, y = classes(n_classes=n_classes)
    grid = {"break_ties": [True, False], "decision_function_shape": ["ovo", "ovr"]}
    with pytest.warns(match="break_ties must be False"):
        ours, other = both(SVC(tol=TOL), grid, X, y, cv=3, scoring=scoring)
    check_same_search(ours, other)
    assert ours.best_params_ == {"break_ties": True, "decision_function_shape": "ovr"}


def test_scorers_that_ask_for_more_name_the_machine():
    X, y = classes(n_classes=3)
    search = GridSearchCV(SVC(), GRID, scoring="roc_auc_ovr", error_score="raise")
    with pytest.raises(AttributeError, match=r"SVC has none of the following.*predict_proba"):
        search.fit(X, y)


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_candidate_that_does_not_suit_the_data_is_alone_in_that(in_pipeline):
    """It is scikit-learn's to say something about; the others are shared as ever."""
    X, y = classes()
    y[:50] = 0  # few of the second class: at most 0.57 is possible for nu
    cases = [
        (SVC(), "class_weight", [{5: 1.0}, None, {0: 2.0}], 1),
        (NuSVC(), "nu", [0.99, 0.1, 0.2], 1),
        (SVC(), "probability", [False, True], 1),
        (SVC(), "probability", [True, False], 1),
    ]
    for machine, name, values, n_bad in cases:
        grid = {name: values, "gamma": [0.1, 0.5]}
        if in_pipeline:
            machine = Pipeline([("scale", StandardScaler()), ("svm", machine)])
            grid = {f"svm__{key}": tried for key, tried in grid.items()}
        with pytest.warns(match="fits failed"):
            search = GridSearchCV(machine, grid, cv=3).fit(X, y)
        assert search.ledger_.by_sklearn == 2 * n_bad * 3
        assert search.ledger_.cells == 2 * (len(values) - n_bad) * 3
        failed = np.isnan(search.cv_results_["mean_test_score"])
        assert failed.sum() == 2 * n_bad


def test_overlapping_and_repeated_folds():
    X, y = classes()
    rows = np.arange(len(y))
    splits = [(rows[:50], rows[30:]), (rows[::2], rows), (rows[::2], rows)]
    ours, other = both(SVC(tol=TOL), GRID, X, y, cv=splits)
    check_same_search(ours, other)
    check_all_shared(ours)


@pytest.mark.parametrize("cache_size", [0.01, 0.1])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_little_memory_changes_no_score(cache_size, n_jobs):
    X, y = classes(300)
    few = GridSearchCV(SVC(tol=TOL, cache_size=cache_size), GRID, cv=3, n_jobs=n_jobs).fit(X, y)
    plenty = GridSearchCV(SVC(tol=TOL), GRID, cv=3).fit(X, y)
    check_all_shared(few)
    for key in ("split0_test_score", "mean_test_score"):
        assert_allclose(few.cv_results_[key], plenty.cv_results_[key])


def test_what_is_shared_is_evaluated_once():
    X, y = classes(200)
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, cv=5).fit(X, y)
    n = len(y)
    assert search.ledger_.kernel_entries <= 3 * n * n  # distances, and two kernels
    alone = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.1]}, cv=5).fit(X, y)
    assert alone.ledger_.kernel_entries <= n * n
    assert "kernel entries" in str(search.ledger_)


def test_seeds_save_iterations_and_change_nothing():
    X, y = classes(300)
    grid = {"C": np.logspace(-1, 3, 9), "gamma": [0.5, 2.0]}
    seeded = GridSearchCV(SVC(tol=1e-5), grid, cv=3).fit(X, y)
    cold = GridSearchCV(SVC(tol=1e-5), grid, cv=3, seeding="none").fit(X, y)
    assert seeded.ledger_.n_iter < 0.8 * cold.ledger_.n_iter
    assert_allclose(seeded.cv_results_["mean_test_score"], cold.cv_results_["mean_test_score"])


def test_kernels_that_are_indefinite_start_from_nothing():
    X, y = classes()
    grid = {"C": [0.1, 3.0, 30.0], "kernel": ["sigmoid"], "gamma": [0.5]}
    search = GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    assert search.ledger_.seeded == 0
    check_all_shared(search)
    for parameters, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        alone = onefit.cross_val_score(SVC(**parameters), X, y, cv=3, seeding="none")
        assert_allclose(score, alone.mean())


def test_a_limit_on_iterations_is_that_of_a_cold_fit():
    X, y = classes(200)
    with pytest.warns(onefit.solver.ConvergenceWarning, match="max_iter"):
        search = GridSearchCV(SVC(max_iter=20), GRID, cv=3).fit(X, y)
    cold = GridSearchCV(SVC(max_iter=20), GRID, cv=3, seeding="none")
    with pytest.warns(onefit.solver.ConvergenceWarning, match="max_iter"):
        cold.fit(X, y)
    expected = cold.cv_results_["mean_test_score"]
    assert_allclose(search.cv_results_["mean_test_score"], expected)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(20, 60),
    st.sampled_from([2, 3]),
    st.lists(st.sampled_from([0.01, 0.3, 1.0, 50.0]), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.01, 0.3, 3.0, "scale"]), min_size=1, max_size=3),
    st.sampled_from([None, "balanced"]),
    st.integers(0, 5),
)
def test_drawn_searches(n, n_classes, C, gamma, class_weight, seed):
    X, y = classes(n, n_classes, seed)
    estimator = SVC(tol=1e-9, class_weight=class_weight)
    weights = {"sample_weight": np.random.default_rng(seed).uniform(0.5, 2.0, n)}
    ours, other = both(estimator, {"C": C, "gamma": gamma}, X, y, weights, cv=KFold(3))
    check_same_search(ours, other)
    check_all_shared(ours)
