"""The bar is there when it is asked for or a person is watching, and never otherwise."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from onefit import SVC, cross_val_score
from onefit.report.progress import shown

X = np.random.default_rng(0).normal(size=(60, 3))
y = np.arange(60) % 2


def test_quiet_where_nobody_is_watching(capfd):
    cross_val_score(SVC(), X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""


def test_shown_when_asked_for(capfd):
    cross_val_score(SVC(), X, y, cv=4, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "SVC, fold" in err


def test_nothing_is_lost_and_errors_come_through():
    assert list(shown(range(3), 3, "work", show=True)) == [0, 1, 2]

    def failing():
        yield 1
        raise KeyError("x")

    with pytest.raises(KeyError):
        list(shown(failing(), 2, "work", show=True))


LONG = """
import numpy as np
from onefit import SVC, cross_val_score
rng = np.random.default_rng(0)
X, y = rng.normal(size=(6000, 20)), rng.integers(0, 2, 6000)
print("begin", flush=True)
cross_val_score(SVC(C=1000), X, y, cv=50)
"""


def test_shows_itself_in_a_terminal_and_stops_at_once():
    pty = pytest.importorskip("pty")  # not on Windows
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", LONG], stdout=terminal, stderr=terminal, env=os.environ
    )
    os.close(terminal)
    text = b""
    deadline = time.monotonic() + 60
    while b"SVC, fold" not in text and time.monotonic() < deadline:
        text += os.read(controller, 1000)
    assert b"SVC, fold" in text
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    while True:
        try:
            text += os.read(controller, 1000)
        except OSError:  # the other end is closed
            break
    assert process.wait(timeout=30) != 0
    assert time.monotonic() - began < 5.0
    assert b"KeyboardInterrupt" in text
    os.close(controller)
