"""scikit-learn's own tests of its SVMs, with onefit's estimators in the place of its own."""

import importlib.util
import inspect
import re
import types

import pytest
import sklearn.svm

import onefit


class _ProbabilityIgnored:
    """``probability=True``, which onefit refuses, is taken as False.

    Many tests ask for it and check other things besides; so they get as far as these.
    """

    def _training(self, y, weights):
        asked, self.probability = self.probability, False
        try:
            return super()._training(y, weights)
        finally:
            self.probability = asked


class SVC(_ProbabilityIgnored, onefit.SVC):
    """onefit's, but for ``probability``."""


class NuSVC(_ProbabilityIgnored, onefit.NuSVC):
    """onefit's, but for ``probability``."""


OURS = {"SVC": SVC, "SVR": onefit.SVR, "NuSVC": NuSVC, "NuSVR": onefit.NuSVR}
MENTIONS_OURS = re.compile(rf"\b({'|'.join(OURS)})\b")


def ours_among(module_name):
    """The tests of an installed module of scikit-learn that mention one of the four classes.

    The module is run anew, as a copy, so that ``from sklearn.svm import SVR`` and ``svm.SVC`` in it
    mean onefit's classes while scikit-learn itself stays as it is.
    """
    return {
        name: test
        for name, test in vars(_run_with_our_estimators(module_name)).items()
        if name.startswith("test_")
        and inspect.isfunction(test)
        and MENTIONS_OURS.search(inspect.getsource(test))
    }


def _run_with_our_estimators(module_name):
    spec = importlib.util.find_spec(module_name)
    if spec is None:
        pytest.skip(f"{module_name} is not installed", allow_module_level=True)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, estimator in OURS.items():
            patch.setattr(sklearn.svm, name, estimator)
        spec.loader.exec_module(module)
    module.svm = types.SimpleNamespace(**{**vars(sklearn.svm), **OURS})
    return module
