"""Settings that change no answer, and stops before the end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from estimators.examples import TOL, TOY_X, TOY_Y, as_dense, assert_same_decisions, classes
from onefit import SVC

# ---------------------------------------------------------- settings that change no answer


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs_does_not_change_the_answer(n_classes, layout, n_jobs):
    X, y = classes(n_classes, n=200)
    X = layout(X)
    one, more = SVC(C=10).fit(X, y), SVC(C=10, n_jobs=n_jobs).fit(X, y)
    assert_array_equal(more.support_, one.support_)
    assert_array_equal(as_dense(more.dual_coef_), as_dense(one.dual_coef_))
    assert_array_equal(more.intercept_, one.intercept_)
    assert_array_equal(more.decision_function(X), one.decision_function(X))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cache_size", [0.001, 0.1, 200, 1e5])
def test_cache_size_does_not_change_the_answer(cache_size, layout):
    # A whole kernel matrix of 200 rows in float32 takes 0.16 MB; 0.001 MB is one row.
    X, y = classes(2, n=200)
    X = layout(X)
    model = SVC(cache_size=cache_size, C=10, tol=TOL).fit(X, y)
    assert_same_decisions(model, SVC(C=10, tol=TOL).fit(X, y), X)


def test_shrinking_does_not_change_the_answer():
    X, y = classes(3, n=200)
    shrunk = SVC(shrinking=True, C=10, tol=TOL).fit(X, y)
    assert_same_decisions(shrunk, SVC(shrinking=False, C=10, tol=TOL).fit(X, y), X)


def test_the_order_of_rows_does_not_change_the_answer():
    X, y = classes(3)
    order = np.random.default_rng(0).permutation(len(y))
    model = SVC(C=10, tol=TOL).fit(X[order], y[order])
    assert_same_decisions(model, SVC(C=10, tol=TOL).fit(X, y), X)


def test_fits_in_several_threads_do_not_disturb_each_other():
    # A fit lets other Python threads run, so two may be inside the solver at once.
    problems = [classes(3, n=150, seed=seed) for seed in range(8)]
    alone = [SVC(C=10).fit(X, y).decision_function(X) for X, y in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda p: SVC(C=10).fit(*p).decision_function(p[0]), problems))
    for expected, found in zip(alone, together, strict=True):
        assert_array_equal(found, expected)


def test_a_second_fit_forgets_the_first():
    X, y = classes(4)
    model = SVC(kernel="linear").fit(X, y)
    model.fit(TOY_X, TOY_Y)
    fresh = SVC(kernel="linear").fit(TOY_X, TOY_Y)
    for name in ("classes_", "support_", "dual_coef_", "intercept_", "n_iter_", "coef_"):
        assert_array_equal(getattr(model, name), getattr(fresh, name))
    assert model.n_features_in_ == 2
    assert model.shape_fit_ == (6, 2)


def test_nothing_is_printed(capfd):
    SVC().fit(*classes(3)).predict(classes(3)[0])
    assert capfd.readouterr() == ("", "")


# ----------------------------------------------------------------- stopping before the end


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_max_iter_stops_with_a_warning(max_iter, n_classes):
    X, y = classes(n_classes, n=100)
    with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
        model = SVC(C=100, max_iter=max_iter).fit(X, y)
    assert model.fit_status_ == 1
    assert_array_equal(model.n_iter_, np.full(n_classes * (n_classes - 1) // 2, max_iter))
    assert model.predict(X).shape == (100,)


def test_max_iter_that_is_not_reached_gives_no_warning():
    X, y = classes(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(max_iter=100_000).fit(X, y)
    assert model.fit_status_ == 0
    assert (model.n_iter_ > 0).all()
    assert (model.n_iter_ < 100_000).all()


INTERRUPTED = """
    import numpy as np
    from onefit import SVC

    n, n_classes, n_jobs = {n}, {n_classes}, {n_jobs}
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 5)), rng.integers(0, n_classes, n)
    print("fitting", flush=True)
    try:
        SVC(C=1e6, tol=1e-9, n_jobs=n_jobs).fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("ended by itself", flush=True)
    print(SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]]), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process on Windows")
@pytest.mark.parametrize(
    ("n", "n_classes", "n_jobs"), [(20_000, 2, None), (9_000, 3, 2)], ids=["one", "pairs"]
)
def test_ctrl_c_ends_a_long_fit(n, n_classes, n_jobs):
    # Labels are random and C is large: such a fit takes minutes.
    code = textwrap.dedent(INTERRUPTED.format(n=n, n_classes=n_classes, n_jobs=n_jobs))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(20, child.kill)  # else a deaf fit would hang this test
        try:
            assert child.stdout.readline() == "fitting\n"
            watchdog.start()
            time.sleep(1.5)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent < 2.0
            assert child.stdout.readline() == "[0 1]\n"
        finally:
            watchdog.cancel()
            child.kill()


def test_a_fit_that_was_stopped_leaves_the_earlier_one_whole(monkeypatch):
    X, y = classes(3)
    model = SVC(gamma=0.3).fit(X, y)
    before = model.decision_function(X)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("onefit.estimators.base.solve", stop)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(gamma=30.0).fit(X + 1, np.where(y == 2, "two", "other"))
    assert_array_equal(model.decision_function(X), before)
