"""Options of the test run: ``--long`` draws many more problems."""

import os
import signal


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="draw ten times as many problems")


def pytest_configure(config):
    # In the environment, so that the workers of pytest-xdist see it before they import the tests.
    if config.getoption("--long"):
        os.environ["ONEFIT_LONG"] = "1"
    # Shells start background jobs deaf to Ctrl-C, and what tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
