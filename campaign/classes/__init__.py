"""One file per class of cases: ``draw(name, rng)``, ``check(case)`` and ``code(case)``."""
