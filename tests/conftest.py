"""Options of the test run: ``--long`` draws many more problems."""

import os


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="draw ten times as many problems")


def pytest_configure(config):
    # In the environment, so that the workers of pytest-xdist see it before they import the tests.
    if config.getoption("--long"):
        os.environ["ONEFIT_LONG"] = "1"
