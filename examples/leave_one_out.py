"""Leave-one-out in a few lines: the error, what settled each row, and the rows to look at first.

Run it with ``python examples/leave_one_out.py``; with matplotlib it writes a picture.
"""

from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from onefit import SVC, leave_one_out

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# A number for gamma, or "auto": with "scale" every left-out row would have a kernel of its own.
model = SVC(C=10, gamma="auto")

began = perf_counter()
result = leave_one_out(model, X, y)
print(result)
print(f"{perf_counter() - began:.3f} s for {len(y)} fits\n")

# Values of all rows, where the default is content with proofs of the side that a row falls on:
# scores that rank rows need them, and so does a picture of all rows.
result = leave_one_out(model, X, y, certify=False)

# Rows that the model leans on: without them their own value moves most.
print("  row  class  left out as    value  influence")
for row in np.argsort(-result.influence)[:5]:
    print(
        f"{row:>5}  {y[row]:>5}  {result.predictions[row]:>11}"
        f"  {result.decision_values[row]:>7.2f}  {result.influence[row]:>9.2f}"
    )

try:
    ax = result.plot()
except ImportError as reason:
    print(f"\n{reason}")
else:
    ax.set_title(f"Breast cancer: leave-one-out error {result.error:.2%}")
    picture = Path("leave_one_out.png")
    ax.figure.savefig(picture, dpi=150)
    print(f"\npicture: {picture}")
