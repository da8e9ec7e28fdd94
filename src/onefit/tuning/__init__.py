"""Tuning: a search over parameters whose candidates share what they can."""

from onefit.tuning.choices import EdgeOfGridWarning
from onefit.tuning.search import GridSearchCV, RandomizedSearchCV

__all__ = ["EdgeOfGridWarning", "GridSearchCV", "RandomizedSearchCV"]
