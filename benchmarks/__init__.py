"""Benchmarks of onefit against the libraries people use instead; see README.md.

Data flows one way: machines -> datasets -> rivals -> subjects -> runner -> summary -> report.
Nothing here imports numpy at package level, because the number of BLAS and OpenMP threads has to
be fixed in the environment before numpy is loaded (see ``__main__``).
"""
