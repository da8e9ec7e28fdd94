"""What scikit-learn's tests need from its own ``conftest.py``, and which of them may fail."""

import pytest

from sklearn_suite.exceptions import EXCEPTIONS


@pytest.fixture
def global_random_seed():
    return 42


def pytest_collection_modifyitems(items):
    for item in items:
        for test, reason in EXCEPTIONS.items():
            if "sklearn_suite" in item.nodeid and test in (item.name, item.originalname):
                # Strict: one that passes has to leave the list.
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
