"""Tuning: a search over parameters whose candidates share what they can."""

from onefit.tuning.search import GridSearchCV, RandomizedSearchCV

__all__ = ["GridSearchCV", "RandomizedSearchCV"]
