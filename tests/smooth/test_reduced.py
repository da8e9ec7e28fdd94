"""Reduced sets: what is chosen, and fits on it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from onefit import ReducedKernel, SmoothSVC
from onefit.smooth.reduced import incremental_set, random_set, row_keys
from smooth.problems import classes, sparse


def naive_incremental(K, order, threshold, failures):
    """Algorithm 3.1 with a least-squares problem for every row."""
    chosen, failed = list(order[:2]), 0
    for row in order[2:]:
        beta = np.linalg.lstsq(K[:, chosen], K[:, row], rcond=None)[0]
        r = np.linalg.norm(K[:, chosen] @ beta - K[:, row])
        if r > threshold * np.sqrt(len(K)):
            chosen.append(row)
            failed = 0
        else:
            failed += 1
        if failed == failures:
            break
    return sorted(chosen)


def naive_batches(K, order, threshold, failures, size):
    chosen, failed = list(order[:2]), 0
    for first in range(2, len(order), size):
        beta = np.linalg.lstsq(K[:, chosen], K, rcond=None)[0]
        r = np.linalg.norm(K[:, chosen] @ beta - K, axis=0)
        for row in order[first : first + size]:
            if failed == failures:
                break
            failed = 0 if r[row] > threshold * np.sqrt(len(K)) else failed + 1
            if failed == 0:
                chosen.append(row)
        if failed == failures:
            break
    return sorted(chosen)


@pytest.mark.parametrize("threshold", [0.2, 0.05, 0.01])
@pytest.mark.parametrize("failures", [1, 5])
def test_rows_that_add_something(threshold, failures):
    X, _ = classes(n=120)
    K, keys = rbf_kernel(X, gamma=0.2), row_keys(X, 3)
    order = np.argsort(keys)
    chosen = incremental_set(keys, lambda rows: K[:, rows], threshold, 1, failures)
    assert_array_equal(chosen, naive_incremental(K, order, threshold, failures))
    for size in (4, 7):
        chosen = incremental_set(keys, lambda rows: K[:, rows], threshold, size, failures)
        assert_array_equal(chosen, naive_batches(K, order, threshold, failures, size))


def test_distances_on_some_of_many_rows():
    X, y = classes(n=4_000)
    machine = SmoothSVC(reduced="incremental", gamma=0.2, random_state=0)
    whole = machine.fit(X, y).component_indices_
    some = machine.set_params(cache_size=2.5).fit(X, y).component_indices_  # 1,280 rows
    assert 0.7 < len(some) / len(whole) < 1.4
    assert len(np.intersect1d(some, whole)) > 0.6 * len(whole)


def test_copies_in_a_batch_do_no_harm():
    X, y = classes(n=40)
    X = np.vstack([X, X + 1e-12])
    model = SmoothSVC(reduced="incremental", batch_size=80, threshold=1e-3, gamma=0.3)
    model.fit(X, np.concatenate([y, y]))
    assert np.isfinite(model.dual_coef_).all()


def test_a_limit_on_an_incremental_set():
    X, _ = classes(n=120)
    chosen = ReducedKernel(
        selection="incremental", threshold=0.0, n_components=7, failures=200, random_state=0
    ).fit(X)
    assert len(chosen.component_indices_) == 7


def test_a_random_set_does_not_depend_on_other_rows():
    X, _ = classes(n=200)
    keys = row_keys(X, 1)
    whole = random_set(keys, 20)
    kept = np.sort(np.concatenate([whole, np.setdiff1d(np.arange(200), whole)[::2]]))
    assert_array_equal(kept[random_set(keys[kept], 20)], whole)
    turned = np.arange(200)[::-1]
    assert_array_equal(np.sort(turned[random_set(keys[turned], 20)]), whole)
    assert not np.array_equal(random_set(row_keys(X, 2), 20), whole)


def test_keys_are_of_the_entries():
    X, _ = classes()
    few = sparse(X)
    assert_array_equal(row_keys(few, 5), row_keys(few.toarray(), 5))
    copies = np.vstack([X, X])
    keys = row_keys(copies, 0)
    assert_array_equal(keys[:60], keys[60:])
    assert len(np.unique(keys)) == 60
    assert len(random_set(keys, 100)) == 60  # copies are no columns


def test_the_size_grows_slowly():
    sizes = [len(random_set(np.arange(n, dtype=np.uint64), None)) for n in (4, 350, 768, 500_000)]
    assert sizes == [4, 36, 46, 397]


@pytest.mark.parametrize("selection", ["random", "incremental"])
def test_transformer_and_machine_choose_the_same_rows(selection):
    X, y = classes(n=150)
    chosen = {"gamma": 0.2, "random_state": 4}
    kernel = ReducedKernel(selection=selection, **chosen).fit(X)
    model = SmoothSVC(reduced=selection, **chosen).fit(X, y)
    assert_array_equal(kernel.component_indices_, model.component_indices_)
    assert_allclose(kernel.transform(X), rbf_kernel(X, X[kernel.component_indices_], gamma=0.2))
    linear = LinearSVC(C=0.5, tol=1e-10, dual=False, max_iter=100_000)
    linear.fit(kernel.transform(X), y)
    assert_allclose(linear.coef_, model.dual_coef_, atol=1e-4)
    assert len(kernel.get_feature_names_out()) == len(kernel.component_indices_)
    pipeline = make_pipeline(ReducedKernel(selection=selection, **chosen), linear).fit(X, y)
    assert pipeline.score(X, y) > 0.6


@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_of_rows_give_the_same(is_sparse, monkeypatch):
    X, y = classes(n=2_000)
    X = sparse(X) if is_sparse else X
    machine = SmoothSVC(reduced="random", n_components=30, gamma=0.1, random_state=0, tol=1e-11)
    whole = machine.fit(X, y).dual_coef_
    monkeypatch.setattr("onefit.smooth.design.BLOCK_BYTES", 8 * 31 * 100)
    blocks = machine.set_params(cache_size=0.01).fit(X, y).dual_coef_
    assert_allclose(blocks, whole, atol=1e-9)


def test_memory_stays_within_the_budget(monkeypatch):
    """No block is larger than the budget, and the whole matrix is never there."""
    from onefit.estimators import smooth_features

    seen = []
    values_with = smooth_features.values_with

    def watched(*args):
        values = values_with(*args)
        seen.append(values.size)
        return values

    monkeypatch.setattr(smooth_features, "values_with", watched)
    monkeypatch.setattr("onefit.smooth.design.BLOCK_BYTES", 1 << 20)
    X, y = classes(n=20_000)
    SmoothSVC(reduced="random", n_components=50, cache_size=2, gamma=0.1).fit(X, y)
    assert 0 < 8 * max(seen) <= 1 << 20
