"""A script that cross-validates scikit-learn's SVC, and the same with one import changed."""

from time import perf_counter

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import onefit

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# As it was.
began = perf_counter()
theirs = cross_val_score(SVC(), X, y, cv=10)
their_time = perf_counter() - began

# `from onefit import SVC, cross_val_score`, and the same call.
began = perf_counter()
ours = onefit.cross_val_score(onefit.SVC(), X, y, cv=10)
our_time = perf_counter() - began

print(f"{'':14}{'seconds':>9}{'accuracy':>10}")
print(f"{'scikit-learn':14}{their_time:>9.4f}{theirs.mean():>10.4f}")
print(f"{'onefit':14}{our_time:>9.4f}{ours.mean():>10.4f}")
print(
    f"{their_time / our_time:.1f} times as fast; scores of all folds equal: {all(ours == theirs)}"
)

# cross_validate has scikit-learn's dictionary of scores and says what each fold took.
print()
print(onefit.cross_validate(onefit.SVC(), X, y, cv=10).ledger)
