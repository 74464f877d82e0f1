"""Mutants are tried in a copy, never in the tree itself, and only against tests that pass without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.trial import Copy, Needs, TrialError, Verdict

MODULE, TESTS = Path("jmsaio/rules/a.py"), Path("tests/rules/test_a.py")
SOURCE = "def one():\n    return 1\n"
FILES = {
    "jmsaio/__init__.py": "",
    "jmsaio/rules/__init__.py": "",
    str(MODULE): SOURCE,
    str(TESTS): "from jmsaio.rules.a import one\n\n\ndef test_one():\n    assert one() == 1\n",
}

MARKED = """
import os
import pytest

@pytest.mark.broker
def test_the_broker_is_told():
    assert os.environ["JMSAIO_TEST_WEB_URL"] == "http://it:1"

@pytest.mark.broker
@pytest.mark.own_broker
def test_of_its_own():
    assert False

@pytest.mark.broker
@pytest.mark.java
def test_java():
    assert False

def test_none():
    assert False
"""


@pytest.fixture(autouse=True)
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of these few tests load only the plugins that their command line needs."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist.plugin -p pytest_timeout -p no:cacheprovider")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


@pytest.fixture
def copy(tree: Path, tmp_path: Path) -> Copy:
    return Copy.of(tree, tmp_path / "copy")


def test_a_mutant_in_the_copy_fails_its_tests_and_leaves_the_tree_alone(tree: Path, copy: Copy) -> None:
    copy.measure([TESTS], Needs.PYTHON, slow=60)
    assert copy.run([TESTS], Needs.PYTHON) is Verdict.PASSED
    copy.write(MODULE, "def one():\n    return 2\n")  # as long as before, within the same second
    assert copy.run([TESTS], Needs.PYTHON) is Verdict.FAILED
    assert (tree / MODULE).read_text() == SOURCE


def test_a_module_that_can_not_be_imported_is_noticed(copy: Copy) -> None:
    copy.write(MODULE, "raise KeyError\n")
    assert copy.run([TESTS], Needs.PYTHON) is Verdict.FAILED


def test_a_test_that_fails_without_a_mutant_judges_nothing(copy: Copy) -> None:
    copy.write(TESTS, "def test_one():\n    assert False\n")
    copy.measure([TESTS], Needs.PYTHON, slow=60)
    assert copy.left_out == {f"{TESTS}::test_one": "failed without a mutant"}
    assert copy.run([TESTS], Needs.PYTHON) is Verdict.PASSED


def test_a_slow_test_is_left_out(copy: Copy) -> None:
    copy.measure([TESTS], Needs.PYTHON, slow=-1)
    assert copy.left_out == {f"{TESTS}::test_one": "0 s"}


def test_many_tests_that_fail_without_a_mutant_are_an_error(copy: Copy) -> None:
    copy.write(TESTS, "\n".join(f"def test_{number}():\n    assert False\n" for number in range(6)))
    with pytest.raises(TrialError, match="too many tests fail"):
        copy.measure([TESTS], Needs.PYTHON, slow=60)


def test_what_needs_a_broker_is_told_which_and_what_stops_its_own_is_not_run(tree: Path, tmp_path: Path) -> None:
    (tree / TESTS).write_text(MARKED)
    copy = Copy.of(tree, tmp_path / "copy", {"JMSAIO_TEST_WEB_URL": "http://it:1"})
    copy.measure([TESTS], Needs.BROKER, slow=60)
    assert copy.left_out == {}
    assert set(copy.seconds) == {(Needs.BROKER, TESTS)}
    assert copy.run([TESTS], Needs.BROKER) is Verdict.PASSED
    assert copy.run([TESTS], Needs.PYTHON) is Verdict.FAILED


def test_a_twin_knows_what_was_measured_and_has_mutants_of_its_own(copy: Copy) -> None:
    copy.measure([TESTS], Needs.PYTHON, slow=-1)
    twin = copy.twin()
    twin.write(MODULE, "def one():\n    return 2\n")
    assert (copy.root / MODULE).read_text() == SOURCE
    assert twin.left_out == copy.left_out != {}


def test_tests_that_are_not_there_are_an_error_and_no_verdict(copy: Copy) -> None:
    with pytest.raises(TrialError, match="status 4"):
        copy.run([Path("tests/test_missing.py")], Needs.PYTHON)


def test_a_mutant_that_never_ends_is_stopped(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutants.trial.GRACE", 2)
    copy.write(MODULE, "def one():\n    while True:\n        pass\n")
    assert copy.run([TESTS], Needs.PYTHON) is Verdict.STUCK


def test_a_copy_that_the_tests_would_not_import_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "jmsaio" / "__init__.py").unlink()
    (tree / "jmsaio" / "rules" / "__init__.py").unlink()
    with pytest.raises(TrialError, match="would import"):
        Copy.of(tree, tmp_path / "copy")
