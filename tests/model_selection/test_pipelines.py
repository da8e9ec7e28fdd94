"""A pipeline is fitted fold by fold by scikit-learn; where a fold starts changes only its work."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn import model_selection as theirs
from sklearn.base import is_classifier
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KernelCenterer, MaxAbsScaler, StandardScaler
from strategies import drawn

from model_selection import problems
from onefit import SVC, SVR, NuSVC, NuSVR, cross_val_predict, cross_val_score, cross_validate
from onefit.model_selection import starts
from onefit.model_selection.pipelines import last_machine
from onefit.seeding import STRATEGIES

# Decision values of these well-conditioned problems follow the KKT gap, at most TOL.
TOL = 1e-7
ATOL = 1e-5

SEEDINGS = ["auto", *STRATEGIES]
PIPELINES = {
    "SVC": make_pipeline(StandardScaler(), SVC(C=3.0, gamma=0.1, tol=TOL)),
    "SVC, scale": make_pipeline(PCA(3), SVC(tol=TOL)),
    "SVC, three classes": make_pipeline(StandardScaler(), SVC(C=3.0, tol=TOL)),
    "SVC, nested": make_pipeline(
        StandardScaler(), Pipeline([("none", "passthrough"), ("svc", SVC(gamma=0.1, tol=TOL))])
    ),
    "SVC, other columns": make_pipeline(
        StandardScaler(), SelectKBest(k=2), SVC(kernel="linear", C=3.0, tol=TOL)
    ),
    "NuSVC": make_pipeline(MaxAbsScaler(), NuSVC(nu=0.37, gamma=0.1, tol=TOL)),
    "SVR": make_pipeline(StandardScaler(), SVR(C=3.0, epsilon=0.2, tol=TOL)),
    "NuSVR": make_pipeline(StandardScaler(), NuSVR(C=3.0, nu=0.37, gamma=0.1, tol=TOL)),
}


@pytest.fixture(autouse=True)
def small_data_are_seeded_too(monkeypatch):
    monkeypatch.setattr(starts, "LEAST_ROWS", 0)
    monkeypatch.setattr(starts, "LEAST_SHARED", 0.0)


def data(name, n=60):
    """The same problems with features of different sizes."""
    X, y = problems.data(name, n)
    return (10 * X if X.shape[1] == 4 else X * [1, 10, 100, 0.1, 1]) + 3, y


def methods(pipeline):
    return ["predict", "decision_function"] if is_classifier(pipeline) else ["predict"]


@pytest.mark.parametrize("seeding", SEEDINGS)
@pytest.mark.parametrize("name", PIPELINES)
def test_values_of_held_out_rows(name, seeding):
    pipeline = PIPELINES[name]
    X, y = data(name)
    labels = np.array(["b", "c", "a"])[y] if is_classifier(pipeline) else y
    for method in methods(pipeline)[-1 if seeding != "auto" else 0 :]:
        ours = cross_val_predict(pipeline, X, labels, cv=4, method=method, seeding=seeding)
        expected = theirs.cross_val_predict(pipeline, X, labels, cv=4, method=method)
        if method == "predict" and is_classifier(pipeline):
            assert_array_equal(ours, expected)
        else:
            assert_allclose(ours, expected, rtol=ATOL, atol=ATOL)


@pytest.mark.parametrize("seeding", ["auto", "sir", "avg"])
@pytest.mark.parametrize("name", PIPELINES)
def test_everything_that_scikit_learn_returns(name, seeding):
    pipeline = PIPELINES[name]
    X, y = data(name)
    settings = {
        "cv": KFold(4, shuffle=True, random_state=0),
        "return_train_score": True,
        "return_estimator": True,
        "return_indices": True,
        "scoring": ["accuracy", "f1_macro"] if is_classifier(pipeline) else ["r2"],
    }
    ours = cross_validate(pipeline, X, y, **settings, seeding=seeding)
    expected = theirs.cross_validate(pipeline, X, y, **settings)
    problems.check_same_scores(ours, expected, ATOL)
    for one, other in zip(ours["estimator"], expected["estimator"], strict=True):
        assert type(one) is Pipeline
        assert vars(one[-1]).keys() == vars(other[-1]).keys()
        assert vars(last_machine(one)).keys() == vars(last_machine(other)).keys()
        assert_allclose(pickle.loads(pickle.dumps(one)).predict(X), other.predict(X), atol=ATOL)


@pytest.mark.parametrize("seeding", ["auto", "mir", "top"])
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(sorted(PIPELINES)))
@drawn(15)
def test_layouts_weights_and_folds_that_lack_a_class(seeding, seed, name):
    rng = np.random.default_rng(seed)
    pipeline = PIPELINES[name]
    X, y = data(name, n=int(rng.integers(20, 50)))
    if rng.random() < 0.5:  # folds that lack a class, or hold only one
        X, y = X[np.argsort(y)], np.sort(y)
    X = X.astype(rng.choice([np.float32, np.float64]))
    if name == "NuSVC" and rng.random() < 0.7:
        X = sp.csr_array(X)
    cv = [KFold(3), ShuffleSplit(3, test_size=0.3, random_state=0), GroupKFold(3)][seed % 3]
    settings = {"cv": cv, "groups": np.arange(len(y)) % 7 if seed % 3 == 2 else None}
    if rng.random() < 0.5 and "nested" not in name:
        weight = rng.uniform(0.5, 2.0, len(y))
        weight[rng.random(len(y)) < 0.2] = 0.0
        settings["params"] = {f"{pipeline.steps[-1][0]}__sample_weight": weight}
        if "standardscaler" in pipeline.named_steps:
            settings["params"]["standardscaler__sample_weight"] = weight
    settings["scoring"] = None if is_classifier(pipeline) else "neg_mean_absolute_error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        try:
            expected = theirs.cross_val_score(pipeline, X, y, **settings)
        except ValueError as error:  # every fold failed
            with pytest.raises(ValueError, match=str(error)[:20]):
                cross_val_score(pipeline, X, y, **settings, seeding=seeding)
            return
        ours = cross_val_score(pipeline, X, y, **settings, seeding=seeding)
    assert_allclose(ours, expected, atol=ATOL)


@pytest.mark.parametrize("seeding", [name for name in SEEDINGS if name != "none"])
@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "NuSVC", "SVR", "NuSVR"])
def test_seeds_cut_iterations(name, seeding):
    # A start that is dropped on the way would give the same answers.
    if (name, seeding) == ("SVC, three classes", "auto"):
        pytest.skip("with more than two classes a start takes the time that it saves")
    if (name, seeding) == ("NuSVC", "top"):
        pytest.skip(
            "TOP hands out row by row: with two fixed sums it takes more iterations, not less"
        )
    if (name, seeding) == ("SVR", "ato"):
        pytest.skip("ATO takes more iterations here, without a pipeline too")
    if seeding == "auto" and name.endswith("SVR"):
        pytest.skip("predictions are values: they must not depend on where a fold starts")
    pipeline = pickle.loads(pickle.dumps(PIPELINES[name]))
    pipeline.steps[-1][1].set_params(tol=1e-3)
    X, y = data(name, n=200 if name == "NuSVR" else 300)
    settings = {"cv": 20}
    settings["scoring"] = None if is_classifier(pipeline) else "neg_mean_absolute_error"
    seeded = cross_validate(pipeline, X, y, **settings, seeding=seeding).ledger
    cold = cross_validate(pipeline, X, y, **settings, seeding="none").ledger
    assert sum(fold.n_iter for fold in seeded.folds) < 0.95 * cold.n_iter
    assert {fold.seeded_from for fold in cold.folds} == {"nothing"}
    assert "nothing" not in {fold.seeded_from for fold in seeded.folds[1:]}
    assert (seeded.full is not None) == (seeding in ("avg", "top", "follow"))
    assert all(fold.kernel_entries > 0 and fold.seconds > 0 for fold in seeded.folds)


def test_auto_starts_cold_where_a_start_does_not_pay(monkeypatch):
    monkeypatch.undo()
    pipeline = make_pipeline(StandardScaler(), SVC())
    X, y = data("SVC", n=2000)

    def sources(X, y, cv):
        folds = cross_validate(pipeline, X, y, cv=cv).ledger.folds
        return {fold.seeded_from for fold in folds}

    assert sources(X, y, 10) == {"nothing", *(f"fold {k}" for k in range(9))}
    assert sources(X, y, 5) == {"nothing"}
    assert sources(X[:500], y[:500], 10) == {"nothing"}


def test_a_memory_of_the_transformers(tmp_path):
    X, y = data("SVC")
    pipeline = make_pipeline(StandardScaler(), SVC(tol=TOL), memory=str(tmp_path))
    expected = theirs.cross_val_predict(pipeline, X, y, cv=3, method="decision_function")
    for _ in range(2):
        ours = cross_val_predict(pipeline, X, y, cv=3, method="decision_function", seeding="sir")
        assert_allclose(ours, expected, atol=ATOL)


@pytest.mark.parametrize("seeding", ["auto", "sir", "top"])
def test_a_fold_that_cannot_be_fitted_has_the_error_score(seeding):
    X, y = data("NuSVC")
    train = np.concatenate((np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]))
    good = (np.arange(50), np.arange(50, 60))
    cv = [good, (train, np.flatnonzero(y == 1)[3:]), (np.arange(10, 60), np.arange(10))]
    pipeline = make_pipeline(StandardScaler(), NuSVC(nu=0.5))
    with pytest.warns(FitFailedWarning, match="infeasible"):
        scores = cross_validate(pipeline, X, y, cv=cv, error_score=-7.0, seeding=seeding)
    assert scores["test_score"][1] == -7.0
    assert scores.ledger.folds[1].n_iter == 0
    source = "all rows" if seeding == "top" else "fold 0"
    assert scores.ledger.folds[2].seeded_from == source


@pytest.mark.parametrize("seeding", SEEDINGS)
def test_all_rows_may_be_impossible_where_folds_are_not(seeding):
    X, y = data("SVC")
    X[:10] = np.nan
    cv = [(np.arange(10, 50), np.arange(50, 60)), (np.arange(20, 60), np.arange(10, 20))]
    pipeline = PIPELINES["SVC"]
    ours = cross_val_score(pipeline, X, y, cv=cv, seeding=seeding)
    assert_array_equal(ours, theirs.cross_val_score(pipeline, X, y, cv=cv))


def test_side_by_side():
    X, y = data("SVC")
    with joblib.parallel_config(backend="threading"):
        scores = cross_validate(PIPELINES["SVC"], X, y, n_jobs=2)
    assert scores.ledger.folds == []
    assert_array_equal(scores["test_score"], theirs.cross_val_score(PIPELINES["SVC"], X, y))


@pytest.mark.parametrize("seeding", SEEDINGS)
def test_random_transformers_draw_what_they_draw_in_scikit_learn(seeding):
    X, y = data("SVC")
    for random_state in (None, np.random.RandomState(3)):
        features = Nystroem(gamma=0.1, n_components=10, random_state=random_state)
        pipeline = make_pipeline(StandardScaler(), features, SVC(tol=TOL))
        np.random.seed(0)
        ours = cross_val_predict(pipeline, X, y, method="decision_function", seeding=seeding)
        np.random.seed(0)
        expected = theirs.cross_val_predict(pipeline, X, y, method="decision_function")
        assert_allclose(ours, expected, atol=ATOL)


@pytest.mark.parametrize("seeding", SEEDINGS)
def test_given_kernels_and_other_rows_than_numbers(seeding):
    X, y = data("SVC")
    K = rbf_kernel((X - X.mean(0)) / X.std(0), gamma=0.1)
    counts = FunctionTransformer(lambda rows: np.array([[r.count("1"), len(r)] for r in rows]))
    for pipeline, given_X in (
        (make_pipeline(KernelCenterer(), SVC(kernel="precomputed", tol=TOL)), K),
        (make_pipeline(counts, SVC(gamma=0.1, tol=TOL)), [str(row) for row in X.tolist()]),
        (make_pipeline(StandardScaler(), SVC(kernel=lambda A, B: A @ B.T, tol=TOL)), X),
    ):
        settings = {"cv": 4, "method": "decision_function"}
        ours = cross_val_predict(pipeline, given_X, y, **settings, seeding=seeding)
        expected = theirs.cross_val_predict(pipeline, given_X, y, **settings)
        assert_allclose(ours, expected, atol=1e-4)


def test_every_row_left_out():
    X, y = data("SVC", n=30)
    ours = cross_validate(PIPELINES["SVC"], X, y, cv=LeaveOneOut())
    expected = theirs.cross_validate(PIPELINES["SVC"], X, y, cv=LeaveOneOut())
    assert_array_equal(ours["test_score"], expected["test_score"])
    assert len(ours.ledger.folds) == 30


def test_the_pipeline_is_left_alone():
    pipeline = make_pipeline(StandardScaler(), SVC())
    cross_val_score(pipeline, *data("SVC"), seeding="sir")
    assert vars(pipeline.steps[-1][1]).keys() == vars(SVC()).keys()
    assert vars(pipeline.steps[0][1]).keys() == vars(StandardScaler()).keys()


def test_what_is_left_to_scikit_learn():
    X, y = data("SVC")
    pipeline = PIPELINES["SVC"]
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(pipeline, X, y, cv=4, params={})
    assert_array_equal(routed, theirs.cross_val_score(pipeline, X, y, cv=4))
    rows = np.random.default_rng(0).integers(0, 60, 60)  # some of them more than once
    cv = [(rows, np.setdiff1d(np.arange(60), rows))]
    assert_array_equal(
        cross_val_score(pipeline, X, y, cv=cv), theirs.cross_val_score(pipeline, X, y, cv=cv)
    )

    class Other(Pipeline):
        """It might give its last step other rows."""

    scores = cross_validate(Other(pipeline.steps), X, y, cv=4)
    assert_array_equal(scores["test_score"], theirs.cross_val_score(pipeline, X, y, cv=4))
    assert scores.ledger.folds == []
    for broken in (Pipeline([]), Pipeline([("svc", None)]), make_pipeline(SVC(), SVC())):
        for function in (cross_val_score, theirs.cross_val_score):
            with pytest.raises((ValueError, TypeError, AttributeError)):
                function(broken, X, y)


@pytest.mark.parametrize("seeding", [name for name in SEEDINGS if name != "none"])
def test_offsets_where_no_row_is_free(seeding):
    # Any offset between two values is right then: that of a cold fit is wanted, whatever the start.
    X, y = make_classification(90, 4, flip_y=0.2, random_state=3)
    for C in (0.001, 0.01):
        pipeline = make_pipeline(StandardScaler(), SVC(C=C, gamma=0.2))
        found = cross_val_predict(pipeline, X, y, cv=5, method="decision_function", seeding=seeding)
        expected = cross_val_predict(
            pipeline, X, y, cv=5, method="decision_function", seeding="none"
        )
        assert_allclose(found, expected, atol=3e-3)
