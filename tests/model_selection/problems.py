"""Problems that the tests of cross-validation share, and what has to be the same of two results."""

from numpy.testing import assert_allclose
from sklearn.datasets import make_classification, make_regression


def data(name, n=60):
    """Rows and targets for a machine of this name: numbers for regressors, two or three classes."""
    if "R" in name.split(",")[0]:
        X, y = make_regression(n, 4, noise=5.0, random_state=0)
        return X, y / y.std()
    return make_classification(
        n,
        5,
        n_informative=4,
        n_redundant=0,
        n_classes=3 if "three" in name or "pairs" in name else 2,
        n_clusters_per_class=1,
        class_sep=0.7,
        random_state=1,
    )


def check_same_scores(ours, expected, atol):
    """The same keys in the same order, and the same scores."""
    assert list(ours) == list(expected)
    for key in expected:
        if key.startswith(("test_", "train_")):
            assert_allclose(ours[key], expected[key], atol=atol)
