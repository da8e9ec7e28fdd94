"""The C++ core of onefit: kernel rows, the dual problem and its solver."""

from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType


def is_finite(values: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)]) -> bool: ...

class KernelKind(enum.Enum):
    linear = 0

    poly = 1

    rbf = 2

    sigmoid = 3

    distance = 4
    """squared distances, which RBF kernels share"""

class Kernel:
    def __init__(self, kind: KernelKind, gamma: float = 1.0, coef0: float = 0.0, degree: int = 3) -> None: ...

class Points:
    """Rows of data for double-precision kernel blocks."""

    @overload
    def __init__(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], centre: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """The rows of x, less `centre`."""

    @overload
    def __init__(self, data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cols: int) -> None: ...

    @property
    def shape(self) -> tuple[int, int]: ...

def kernel_block(queries: Points, support: Points, kernel: Kernel, first: int, last: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    Kernel values of queries[first:last] with all support points, in double precision.
    """

class KernelStore:
    """
    Float32 kernel rows, evaluated when first asked for, block of columns by block of columns.
    """

    @overload
    @staticmethod
    def from_dense(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], kernel: Kernel, budget_bytes: int, block_starts: Sequence[int] = [0]) -> KernelStore: ...

    @overload
    @staticmethod
    def from_dense(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], kernel: Kernel, budget_bytes: int, block_starts: Sequence[int] = [0]) -> KernelStore: ...

    @staticmethod
    def from_csr(data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cols: int, kernel: Kernel, budget_bytes: int, block_starts: Sequence[int] = [0]) -> KernelStore: ...

    @staticmethod
    def from_matrix(k: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], budget_bytes: int, block_starts: Sequence[int] = [0]) -> KernelStore: ...

    @staticmethod
    def from_function(function: object, diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], budget_bytes: int, block_starts: Sequence[int] = [0]) -> KernelStore:
        """
        Rows of function(rows, first, last), which gives entries in these columns.
        """

    @staticmethod
    def from_distances(distances: KernelStore, gamma: float, budget_bytes: int) -> KernelStore: ...

    def in_blocks(self, budget_bytes: int, block_starts: Sequence[int]) -> KernelStore:
        """A store of the same rows that evaluates and forgets them by blocks."""

    def __len__(self) -> int: ...

    @property
    def capacity(self) -> int:
        """rows that fit into the budget"""

    @property
    def spare_bytes(self) -> int:
        """what the budget leaves beside all rows, or all that fit"""

    @property
    def entries_evaluated(self) -> int: ...

    def row(self, row: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None,))]:
        """A copy of one kernel row."""

    def forget(self, block: int, other: int) -> None:
        """
        Gives up the entries of rows in one block and columns in the other, both ways.
        """

    def block(self, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None))]:
        """Entries of some rows in some columns, as an array of float32."""

    def exact_block(self, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int = 1) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """The same in double precision, evaluated each time they are asked for."""

class Problem:
    """
    min 1/2 b'Kb - linear'b + kink|b|_1, lower <= b <= upper, the sum of b of each group fixed by the start.
    """

    def __init__(self, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kink: float = 0.0, split: int | None = None, start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, start_gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, nu: float = 0.0) -> None: ...

    def __len__(self) -> int: ...

    def with_bounds(self, bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Problem:
        """
        The problem with another bound for each row of the store, started cold.
        """

    def started(self, start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> Problem:
        """The problem with another start."""

    @property
    def rows(self) -> Annotated[NDArray[numpy.int32], dict(writable=False)]: ...

    @property
    def linear(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]: ...

    @property
    def lower(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]: ...

    @property
    def upper(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]: ...

    @property
    def kink(self) -> float: ...

    @property
    def split(self) -> int: ...

    @property
    def two_groups(self) -> bool: ...

class Status(enum.Enum):
    converged = 0

    max_iter = 1

    stalled = 2

    interrupted = 3

    sign_proven = 4

class Solution:
    @property
    def beta(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]: ...

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]: ...

    @property
    def offset(self) -> float: ...

    @property
    def offsets(self) -> tuple[float, float]: ...

    @property
    def free_rows(self) -> bool: ...

    @property
    def objective(self) -> float: ...

    @property
    def gap(self) -> float: ...

    @property
    def n_iter(self) -> int: ...

    @property
    def status(self) -> Status: ...

def solve(store: KernelStore, problems: list[Problem], tol: float = 0.001, max_iter: int = -1, shrinking: bool = True, threads: int = 1, forget: bool = False, progress: object | None = None) -> list[Solution]:
    """
    Solves each problem to the KKT gap `tol`; Ctrl-C stops it. With `forget`, kernel entries are given up as soon as no problem of this call needs them. `progress` is called now and then with the share of the work that is done, and stops it by returning True.
    """

def can_solve_precisely(n: int) -> bool:
    """
    Whether a problem of so many variables can be solved on entries in double precision.
    """

def solve_precisely(store: KernelStore, problem: Problem, tol: float, max_iter: int = -1) -> Solution:
    """
    Solves a problem on kernel entries in double precision, from its start.
    """

def solve_folds(store: KernelStore, problems: list[Problem], bounds: list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], solutions: list[Solution | None], same_kernel: bool, tol: float = 0.001, max_iter: int = -1, shrinking: bool = True, threads: int = 1, sign_of: Sequence[int | None] = [], alone: bool = False) -> list[Solution]:
    """
    Solves each problem with other bounds, one for each row of the store, from a solution (or from nothing where it is None); Ctrl-C stops it. same_kernel: the gradients of the solutions belong to this store. sign_of: for each problem a held-out variable of whose value only the sign is asked, or None. alone: no bit of a fold that starts from None, or from a solution of its own, depends on the labels of rows that it holds out; the gradients of these are NaN.
    """

def proven_sign(store: KernelStore, problem: Problem, solution: Solution, variable: int) -> int:
    """
    +1 or -1 where the value of a held-out variable of a C-SVC has that sign at the optimum, 0 where that is not proven.
    """

def rounding_hides(store: KernelStore, problem: Problem, solution: Solution, tol: float) -> bool:
    """
    Whether float32 entries of the kernel are likely to change a gradient of the solution by so much more than the tolerance that it has to be computed anew.
    """

def feasible(problem: Problem, beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    beta within the bounds and with the sums of the problem; what is lacking is spread over the variables `first` first.
    """

def shifted_gradient(store: KernelStore, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], change: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """gradient - K change, over variables that are `rows` of the store."""

class PathEnd:
    """Where a path ends: `u` of the variable that left, and the gap."""

    @property
    def reached(self) -> bool: ...

    @property
    def missing(self) -> int:
        """The place whose column is needed, or -1."""

    @property
    def u(self) -> float: ...

    @property
    def gap(self) -> float: ...

    @property
    def residual(self) -> float:
        """Of the free rows, where the end was refined."""

    @property
    def n_swapped(self) -> int: ...

def follow_paths(problem: Problem, solution: Solution, order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_pivot: int, n_near: int, ridge: float, columns: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], column_of: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], leaving: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], kernel: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, threads: int = 1) -> list[PathEnd]:
    """
    The optima that a solution moves to when the variable at one of the places `leaving` goes to zero, for each of them. `order` has the variables by place. Rows of `columns` are changes of the offset and at every place with the input of one; column_of says of which, with -1 for none. With `kernel`, entries in double precision of each column's place with all others, the equations are solved once more at the end without the ridge.
    """

class PathMemory:
    """Memory of the paths of several problems."""

    def __init__(self) -> None: ...

    def clear(self) -> None:
        """
        Takes the memory from paths that are there, for others: these are not available then.
        """

class FoldPaths:
    """Paths on which the rows of a fold leave the solution on all rows."""

    def __init__(self, store: KernelStore, problem: Problem, solution: Solution, bytes: int, products: float, memory: PathMemory) -> None: ...

    @property
    def available(self) -> bool: ...

    def ends(self, bounds: list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], tol: float, threads: int = 1) -> list[Solution | None]:
        """
        Where the rows of each fold whose bound is 0 have left: a solution, converged if its gap is below `tol` and else something to start from, or None. Bounds have an entry for each row of the store.
        """

class FoldSolutions:
    """The solutions of all problems of some folds, kept in one piece."""

    def __len__(self) -> int: ...

    def fold(self, number: int) -> list[Solution]:
        """The solutions of a fold."""

    @property
    def n_iter(self) -> list[int]:
        """Iterations of each fold."""

    @property
    def converged(self) -> list[bool]:
        """Whether all problems of each fold converged."""

    @staticmethod
    def joined(parts: list[FoldSolutions]) -> FoldSolutions:
        """
        The same folds, whose problems were solved in several parts, which are empty then.
        """

def solve_together(store: KernelStore, problems: list[Problem], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], solutions: list[Solution | None], paths: list[FoldPaths | None] | None = None, tol: float = 0.001, max_iter: int = -1, shrinking: bool = True, threads: int = 1) -> FoldSolutions:
    """
    Solves each problem with the bounds of each fold, which are the rows of a matrix with a column for each row of the store; from a solution of it on this store, or from nothing where it is None, along its paths where these are not None. Folds without a free row are solved from nothing. Ctrl-C stops it.
    """

def classes_of(labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], list[int]]:
    """
    The labels there are, in rising order, the number of each row's, the rows by class, and where these start.
    """

def dealt_folds(labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_folds: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], list[int]] | None:
    """
    The rows that the folds of StratifiedKFold hold out, fold by fold, and how many each; None where a class has fewer rows than there are folds.
    """

def c_svc_pairs(starts: Sequence[int], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[Problem]:
    """
    A C-SVC for each pair of classes of rows that are sorted by class, with a bound for each row. Class k is the rows starts[k] to starts[k + 1]; the first class of a pair is +1.
    """

def bounds_of_folds(bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Sequence[int], rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Sequence[int], held_out: bool) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))] | None:
    """
    The bound of each row in each fold, 0 for those that take no part; None where a fold has no row of a class. The rows of the folds, so many each, are those that they hold out, or the only ones that take part.
    """

def pair_products(store: KernelStore, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Sequence[int], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], queries: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    Sums of kernel values for each query and pair of classes; rows are sorted by class.
    """

def held_out_labels(store: KernelStore, starts: Sequence[int], solutions: FoldSolutions, first: int, queries: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Sequence[int], tol: float, threads: int = 1) -> tuple[Annotated[NDArray[numpy.int32], dict(shape=(None,))], list[int], list[float]]:
    """
    The number of the class that the pairs of C-SVC of each fold vote for, for each of its queries; for how many queries of each fold that is their own, and which share of the values that decide it are smaller than tol. The folds are those from `first` on; queries, so many for each fold, and the variables of pairs are rows of the store, which are sorted by class.
    """

def use_blas(blas: dict[str, CapsuleType], lapack: dict[str, CapsuleType]) -> None:
    """
    Takes routines of both precisions as scipy.linalg.cython_blas and cython_lapack export them.
    """

def free_set(kernel: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], single: bool = False) -> tuple[object, object, float]:
    """
    The inverse of [0 1'; 1 K]: the part of the rows, the border and the corner.
    """

def estimate_left_out(store: KernelStore, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], fitted: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], above: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lower: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], kink: float, number: int, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], low: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], high: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], is_open: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu')], is_known: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], is_support: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], changes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], undecided_below: float, signs_only: bool, budget_bytes: int, single_from: int) -> bool:
    """
    Writes estimates of the left-out values of the rows of a fit into the column `number` of arrays with a row for each of the store. Nothing is known, and False returned, without a free row.
    """

def solve_chains(stores: list[KernelStore], problems: list[Problem], bounds: list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], factors: Sequence[Sequence[float]], before: list[tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]] | None], tol: float = 0.001, max_iter: int = -1, shrinking: bool = True, threads: int = 1, cold: bool = False, finished: object | None = None) -> list[list[Solution]]:
    """
    Solves each problem with its bounds, one for each row of its store, times each of its factors in turn, which must not fall; each starts from the one before, or cold. Rows whose bound is 0 have no part in it: their coefficients are 0, their gradients NaN. The first step starts from `before`, the factor, coefficients and gradients of another solution, or cold where that is None. Returns the solutions, or gives each to `finished(chain, step, solution)`, which stops the work by returning True, and returns nothing. Ctrl-C stops it.
    """

def solve_on(store: KernelStore, problem: Problem, bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, solution: Solution, tol: float, max_iter: int = -1, shrinking: bool = True, threads: int = 1) -> Solution:
    """Solves a step of a chain to another tolerance, from its solution."""

def kernel_sums(store: KernelStore, rows: list[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]], coef: list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], queries: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    For each list of rows and their coefficients, the sum of coefficients times kernel values for each query. Terms are added in the order of the store, and those of 0 leave no trace: equal queries get equal sums, to the last bit.
    """

def solve_cells(stores: list[KernelStore], problems: list[list[Problem]], starts: Sequence[int], bounds: list[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], factors: Sequence[Sequence[float]], queries: list[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]], codes: list[Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]], share: float, tightest: float, tol: float = 0.001, max_iter: int = -1, shrinking: bool = True, threads: int = 1, cold: bool = False, finished: object | None = None) -> None:
    """
    Solves the problems of all pairs of classes of C-SVC, for each store with its bounds and factors, as solve_chains does, and says what the steps come to for the rows in `queries`: `finished(number, values, right, n_iter, finite, unfinished)` gets the values of each step, pair and query, how many queries of each step get the class in `codes` by the votes, the iterations of each step, whether its values are finite, and, if there are any, the solutions of each step that did not converge. Steps are solved on where more than a `share` of their values are smaller than `tol`, and not below `tightest`. Class k has the rows from starts[k] on.
    """

def use_lapack(potrf: CapsuleType, trsv: CapsuleType) -> None:
    """
    Takes dpotrf and dtrsv as scipy.linalg.cython_lapack and cython_blas export them.
    """

def instruction_sets() -> list[str]:
    """Instruction sets of this machine that the core can use, widest first."""

def instruction_set() -> str: ...

def use_instruction_set(name: str) -> None: ...
