"""Tune an SVM: a grid search, what it shared, and probabilities without further fits.

Run it with ``python examples/grid_search.py``; with matplotlib it writes two pictures.
"""

from time import perf_counter

import numpy as np
import sklearn.model_selection
import sklearn.svm
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from onefit import SVC, GridSearchCV
from onefit.tuning import GridDisplay, LedgerDisplay


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": np.logspace(-2, 3, 8), "gamma": np.logspace(-4, 0, 8)}

    began = perf_counter()
    search = GridSearchCV(SVC(), grid, cv=5).fit(X, y)
    ours = perf_counter() - began
    began = perf_counter()
    other = sklearn.model_selection.GridSearchCV(sklearn.svm.SVC(), grid, cv=5).fit(X, y)
    theirs = perf_counter() - began

    print(f"onefit {ours:.3f} s, scikit-learn {theirs:.2f} s: {theirs / ours:.0f} times faster")
    print(f"the same choice: {search.best_params_ == other.best_params_}, {search.best_params_}")
    print(f"simplest within one standard error: {search.best_params_1se_}\n")
    print(search.ledger_)

    probabilities = search.calibrated().predict_proba(X[:3])
    print(f"\nprobabilities of three rows: {probabilities[:, 1].round(3)}")

    try:
        GridDisplay.from_search(search).plot().figure_.savefig("grid.png")
        LedgerDisplay.from_search(search).plot().figure_.savefig("ledger.png")
        print("grid.png and ledger.png are written")
    except ImportError as reason:
        print(reason)


if __name__ == "__main__":
    main()
