"""Support vector machines that fit, cross-validate and tune for the price of about one fit.

The estimators take the place of scikit-learn's: same parameters, same fitted attributes, same
answers.
"""

from onefit.estimators import SVC

__version__ = "0.1.0"

__all__ = ["SVC", "__version__"]
