"""What is installed: version, typing, documentation examples, the command line."""

import doctest
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import onefit
from onefit.cli import app

REPOSITORY = Path(__file__).parents[1]
INSTALLED = Path(onefit.__file__).parent


def test_version():
    assert onefit.__version__ == version("onefit")


def test_the_package_is_typed():
    assert (INSTALLED / "py.typed").exists()


def test_the_stub_of_the_core_is_the_generated_one():
    generated = INSTALLED / "_core.pyi"
    kept = REPOSITORY / "src" / "onefit" / "_core.pyi"
    if not kept.exists():
        pytest.skip("not in a checkout of the repository")
    assert generated.read_text() == kept.read_text(), f"copy {generated} to {kept}"


@pytest.mark.parametrize("estimator", [onefit.SVC, onefit.SVR, onefit.NuSVC, onefit.NuSVR])
def test_examples_in_the_documentation(estimator):
    result = doctest.testmod(sys.modules[estimator.__module__])
    assert result.attempted > 0
    assert result.failed == 0


def test_demo_compares_both_libraries():
    result = CliRunner().invoke(app, ["demo"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    rows = (line for line in result.output.splitlines() if " ms " in line)
    fit, predict, ten, hundred, every_row = rows
    assert "one fit: SVs" in fit
    assert fit.count(" 93 ") == 2
    assert "predict: accuracy" in predict
    assert predict.count("0.9912") == 2
    assert "10 folds: accuracy" in ten
    assert "100 folds: accuracy" in hundred
    assert "leave one out" in every_row
    for line in (ten, hundred, every_row):
        theirs, ours = line.split()[-2:]
        assert theirs == ours
        assert 0.9 < float(ours) < 1.0


def test_version_on_the_command_line():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == onefit.__version__
