"""Settings that change no answer, and stops before the end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from estimators.examples import (
    ATOL,
    TOL,
    TOY_X,
    TOY_Y,
    as_dense,
    assert_same_values,
    classes,
    dense_and_sparse,
    every_classifier,
    every_estimator,
    of_scikit_learn,
    problem,
    values,
)
from onefit import SVC, NuSVC

# ---------------------------------------------------------- settings that change no answer


def check_n_jobs(cls, X, y, n_jobs):
    one, more = cls(gamma=0.5).fit(X, y), cls(gamma=0.5, n_jobs=n_jobs).fit(X, y)
    assert_array_equal(more.support_, one.support_)
    assert_array_equal(as_dense(more.dual_coef_), as_dense(one.dual_coef_))
    assert_array_equal(more.intercept_, one.intercept_)
    assert_array_equal(values(more, X), values(one, X))


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs_does_not_change_the_answer(cls, layout, n_jobs):
    X, y = problem(cls, n=200)
    check_n_jobs(cls, layout(X), y, n_jobs)


@every_classifier
@dense_and_sparse
@pytest.mark.parametrize("n_classes", [2, 4])
def test_n_jobs_does_not_change_the_answer_of_any_pair(cls, layout, n_classes):
    X, y = classes(n_classes, n=200)
    check_n_jobs(cls, layout(X), y, 2)


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("cache_size", [0.001, 0.1, 200, 1e5])
def test_cache_size_does_not_change_the_answer(cls, cache_size, layout):
    # A whole kernel matrix of 200 rows in float32 takes 0.16 MB; 0.001 MB is one row.
    X, y = problem(cls, n=200)
    X = layout(X)
    model = cls(cache_size=cache_size, gamma=0.5, tol=TOL).fit(X, y)
    assert_same_values(model, cls(gamma=0.5, tol=TOL).fit(X, y), X)


@every_estimator
def test_shrinking_does_not_change_the_answer(cls):
    X, y = problem(cls, n=400)
    shrunk = cls(shrinking=True, gamma=0.5, tol=TOL).fit(X, y)
    assert_same_values(shrunk, cls(shrinking=False, gamma=0.5, tol=TOL).fit(X, y), X)


@every_estimator
def test_the_order_of_rows_does_not_change_the_answer(cls):
    X, y = problem(cls)
    order = np.random.default_rng(0).permutation(len(y))
    model = cls(gamma=0.5, tol=TOL).fit(X[order], y[order])
    assert_same_values(model, cls(gamma=0.5, tol=TOL).fit(X, y), X)


@every_estimator
def test_a_second_fit_forgets_the_first(cls):
    X, y = problem(cls)
    model = cls(kernel="linear").fit(X, y)
    model.fit(TOY_X, TOY_Y)
    fresh = cls(kernel="linear").fit(TOY_X, TOY_Y)
    names = ["support_", "dual_coef_", "intercept_", "n_iter_", "coef_", "n_support_"]
    names += ["classes_", "class_weight_"] if is_classifier(model) else []
    for name in names:
        assert_array_equal(getattr(model, name), getattr(fresh, name))
    assert model.n_features_in_ == 2
    assert model.shape_fit_ == (6, 2)
    assert vars(model).keys() == vars(fresh).keys()


@every_estimator
@pytest.mark.parametrize("verbose", [False, True])
def test_nothing_is_printed(cls, verbose, capfd):
    X, y = problem(cls)
    cls(verbose=verbose).fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")


@every_estimator
def test_zero_dimensional_numpy_numbers_as_parameters(cls):
    X, y = problem(cls)
    params = {"gamma": np.float64(0.5), "tol": np.float32(1e-3), "max_iter": np.int64(-1)}
    assert_array_equal(
        values(cls(**params).fit(X, y), X),
        values(cls(gamma=0.5, tol=float(np.float32(1e-3))).fit(X, y), X),
    )


# ----------------------------------------------------------------- stopping before the end


@every_estimator
@pytest.mark.parametrize("max_iter", [0, 1, 2, 5, 20])
def test_max_iter_stops_with_a_warning(cls, max_iter):
    X, y = problem(cls, n=100)
    params = {"gamma": 0.5, "tol": TOL, "max_iter": max_iter}
    with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
        ours = cls(**params).fit(X, y)
    assert ours.fit_status_ == 1
    assert_array_equal(ours.n_iter_, np.full_like(ours.n_iter_, max_iter))
    assert np.isfinite(values(ours, X)).all()
    if max_iter == 0:  # the start is the same; on the way, ties may be broken in another way
        with pytest.warns(ConvergenceWarning, match="max_iter=0"):
            theirs = of_scikit_learn(cls)(**params).fit(X, y)
        assert_allclose(values(ours, X), values(theirs, X), rtol=ATOL, atol=ATOL)


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_nu_svc_may_be_stopped_before_it_has_a_margin(max_iter):
    # Classes without a difference: the first coefficients are on the wrong sides.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = NuSVC(max_iter=max_iter).fit(X, y)
    assert model.fit_status_ == 1
    assert (model.rho_ > 0).all()
    assert np.isfinite(model.decision_function(X)).all()


@every_estimator
def test_max_iter_that_is_not_reached_gives_no_warning(cls):
    X, y = problem(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cls(max_iter=100_000).fit(X, y)
    assert model.fit_status_ == 0
    assert np.min(model.n_iter_) > 0
    assert np.max(model.n_iter_) < 100_000


@every_estimator
def test_a_tolerance_below_rounding_ends(cls):
    X, y = problem(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = cls(tol=1e-300, gamma=0.5).fit(X, y)
    assert_same_values(model, cls(tol=TOL, gamma=0.5).fit(X, y), X)


INTERRUPTED = """
    import numpy as np
    from onefit import SVC, SVR, NuSVC, NuSVR

    rng = np.random.default_rng(0)
    X = rng.standard_normal(({n}, 5))
    y = rng.standard_normal({n}) if "SVR" in "{model}" else rng.integers(0, {n_classes}, {n})
    print("fitting", flush=True)
    try:
        {model}.fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("ended by itself", flush=True)
    print(SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]]), flush=True)
"""

# Targets are random, and C is large or nu is small: such fits take minutes.
LONG_FITS = [
    ("SVC(C=1e6, tol=1e-9)", 20_000, 2),
    ("SVC(C=1e6, tol=1e-9, n_jobs=2)", 9_000, 3),
    ("SVR(C=1e6, tol=1e-9)", 20_000, 0),
    ("NuSVC(nu=1e-3, tol=1e-12)", 20_000, 2),
    ("NuSVR(C=1e6, tol=1e-9)", 20_000, 0),
]


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process on Windows")
@pytest.mark.parametrize(("model", "n", "n_classes"), LONG_FITS)
def test_ctrl_c_ends_a_long_fit(model, n, n_classes):
    code = textwrap.dedent(INTERRUPTED.format(model=model, n=n, n_classes=n_classes))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(20, child.kill)  # else a deaf fit would hang this test
        try:
            assert child.stdout.readline() == "fitting\n"
            watchdog.start()
            time.sleep(0.7)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent < 3.0
            assert child.stdout.readline() == "[0 1]\n"
        finally:
            watchdog.cancel()
            child.kill()


def test_no_memory_for_the_kernel_names_the_remedy(monkeypatch):
    def no_memory(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("onefit.solver._core.solve", no_memory)
    with pytest.raises(MemoryError, match=r"60 samples.*cache_size"):
        SVC().fit(*classes(2))
