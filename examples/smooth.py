"""Smooth machines: a full kernel, a reduced one, and all left-out rows of both."""

from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons
from sklearn.preprocessing import StandardScaler

from onefit import SmoothSVC, cross_val_score, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

print(f"{'kernel columns':20}{'10 folds':>10}{'seconds':>9}{'left out':>10}{'seconds':>9}")
for reduced in (None, "random", "incremental"):
    machine = SmoothSVC(gamma=0.02, reduced=reduced, random_state=0)
    began = perf_counter()
    folds = cross_val_score(machine, X, y, cv=10).mean()
    of_folds, began = perf_counter() - began, perf_counter()
    rows = 1 - leave_one_out(machine, X, y).error
    of_rows = perf_counter() - began
    columns = len(machine.fit(X, y).component_indices_)
    name = f"{columns} ({reduced or 'all rows'})"
    print(f"{name:20}{folds:>10.4f}{of_folds:>9.3f}{rows:>10.4f}{of_rows:>9.3f}")

# Without a fit for any row: exact for most of them, and it says for which.
estimate = leave_one_out(SmoothSVC(gamma=0.02), X, y, method="approximate")
print()
print(estimate)
print(f"exact for {estimate.exact_rows.sum()} of {len(y)} rows")

# Rows are cheap where columns are few.
X, y = make_moons(200_000, noise=0.3, random_state=0)
began = perf_counter()
machine = SmoothSVC(gamma=1.0, reduced="random", random_state=0).fit(X, y)
seconds = perf_counter() - began
print()
print(
    f"{len(y):,} rows with {len(machine.component_indices_)} columns: {seconds:.2f} s, "
    f"{machine.n_iter_[0]} Newton steps, accuracy {np.mean(machine.predict(X) == y):.4f}"
)
