"""Draw problems at random and compare onefit with scikit-learn, SciPy and tight refits.

``python -m campaign --minutes 10`` runs it; ``python -m campaign --help`` says what else it takes.
A class of cases is a file of ``campaign/classes``. It draws a case from a generator and checks it.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The oracles of the tests are those of the campaign: tests/naive.py, tests/estimators/comparison.py
# and tests/smooth/slow.py.
sys.path.insert(1, str(ROOT / "tests"))
