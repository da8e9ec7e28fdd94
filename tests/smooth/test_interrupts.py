"""Linear algebra in blocks, between which Ctrl-C is seen."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from onefit import SmoothSVC, cross_val_predict, leave_one_out
from onefit.smooth import blocks
from smooth.problems import classes

FIT = """
import numpy as np
from onefit import SmoothSVC
rng = np.random.default_rng(0)
X = rng.normal(size=(5_000, 5))
y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=5_000) > 1
print("begun", flush=True)
for _ in range(1_000):
    SmoothSVC(gamma=0.2).fit(X, y)
"""


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(blocks, "OPERATIONS", 5e3)
    monkeypatch.setattr(blocks, "PANEL", 7)


@pytest.mark.parametrize("n", [1, 6, 30, 61])
def test_the_same_as_in_one_call(n, small):
    rng = np.random.default_rng(n)
    A, B, b = rng.normal(size=(n, n)), rng.normal(size=(n, 40)), rng.normal(size=n)
    assert_allclose(blocks.product(A, B), A @ B, atol=1e-11)
    assert_allclose(blocks.gram(B), B.T @ B, atol=1e-11)
    total = np.eye(40)
    blocks.add_gram(total, B, -2.0)
    assert_allclose(total, np.eye(40) - 2 * B.T @ B, atol=1e-11)
    assert_array_equal(total, total.T)
    S = A @ A.T + np.eye(n)
    factor = blocks.cholesky(S)
    assert_allclose(np.tril(factor[0]), np.linalg.cholesky(S), atol=1e-11)
    assert_allclose(blocks.cholesky_solve(factor, B), np.linalg.solve(S, B), atol=1e-9)
    assert_allclose(
        blocks.half_solve(factor, B.copy()), np.linalg.solve(np.tril(factor[0]), B), atol=1e-9
    )
    A += 0.1 * np.eye(n)
    assert_allclose(A @ blocks.solve(A, b), b, atol=1e-9)
    assert_allclose(A @ blocks.solve(A, B), B, atol=1e-9)


def test_what_has_no_factor_or_no_solution(small):
    with pytest.raises(np.linalg.LinAlgError):
        blocks.cholesky(np.diag(np.where(np.arange(60) == 45, -1.0, 1.0)))
    with pytest.raises(np.linalg.LinAlgError):
        blocks.solve(np.diag(np.where(np.arange(60) == 45, 0.0, 1.0)), np.ones(60))


def test_machines_are_the_same_in_blocks(monkeypatch):
    X, y = classes(n=80)

    def answers():
        for update in ("inverse", "dual"):
            machine = SmoothSVC(gamma=0.2, update=update)
            yield machine.fit(X, y).decision_function(X)
            yield cross_val_predict(machine, X, y, cv=3, method="decision_function")
            yield leave_one_out(machine, X, y).decision_values

    expected = list(answers())
    monkeypatch.setattr(blocks, "OPERATIONS", 5e3)
    monkeypatch.setattr(blocks, "PANEL", 7)
    for ours, theirs in zip(answers(), expected, strict=True):
        assert_allclose(ours, theirs, atol=1e-8)


def test_no_call_is_long(monkeypatch):
    """Every call of LAPACK in a fit, its folds and left-out rows is one of few operations."""
    X, y = classes(n=100)
    monkeypatch.setattr(blocks, "OPERATIONS", 5e3)
    monkeypatch.setattr(blocks, "PANEL", 7)
    seen = []
    for name in ("cho_factor", "cho_solve", "solve_triangular"):
        call = getattr(blocks, name)

        def watched(a, *args, call=call, **kwargs):
            matrix = a[0] if isinstance(a, tuple) else a
            columns = args[0].shape[1:] if args else matrix.shape[1:]
            seen.append(len(matrix) ** 2 * (columns[0] if columns else 1))
            return call(a, *args, **kwargs)

        monkeypatch.setattr(blocks, name, watched)
    monkeypatch.delattr(np.linalg, "cholesky")
    for update in ("inverse", "dual"):
        machine = SmoothSVC(gamma=0.2, update=update)
        cross_val_predict(machine, X, y, cv=3)
        leave_one_out(machine, X, y)
    assert 1e4 <= max(seen) <= 4e4  # those of one column, and of blocks


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_large_fit_ends_as_a_keyboard_interrupt():
    command = [sys.executable, "-c", FIT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60.0)
    assert b"KeyboardInterrupt" in errors
    assert process.returncode != 0
