"""Tuning: a search over parameters whose candidates share what they can."""

from onefit.report.displays import GridDisplay, LedgerDisplay
from onefit.tuning.choices import EdgeOfGridWarning
from onefit.tuning.search import GridSearchCV, RandomizedSearchCV

__all__ = [
    "EdgeOfGridWarning",
    "GridDisplay",
    "GridSearchCV",
    "LedgerDisplay",
    "RandomizedSearchCV",
]
