"""The tests around a module are found by where they lie and what they import."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.neighbours import Neighbours

FILES = {
    "jmsaio/__init__.py": "from jmsaio.client.session import Session\n",
    "jmsaio/client/session.py": "from jmsaio.rules.share import split\n",
    "jmsaio/client/other.py": "from jmsaio.codec import decode\n",
    "jmsaio/codec/__init__.py": "from jmsaio.codec.reading import decode\n",
    "jmsaio/codec/reading.py": "",
    "jmsaio/rules/share.py": "",
    "tests/client/test_session.py": "import jmsaio\n",
    "tests/client/test_other.py": "",
    "tests/contract/conftest.py": "from jmsaio.codec import reading\n",
    "tests/contract/test_all.py": "",
    "tests/rules/test_share.py": "",
    "tests/test_far.py": "from jmsaio.rules.share import split\n",
}


@pytest.fixture
def around(tmp_path: Path) -> Neighbours:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Neighbours(tmp_path)


def test_the_mirrored_tests_are_the_nearest(around: Neighbours) -> None:
    assert around.mirrored(Path("jmsaio/rules/share.py")) == [Path("tests/rules/test_share.py")]
    assert around.mirrored(Path("jmsaio/codec/reading.py")) == []


def test_importers_have_their_mirrored_tests_beside_those_that_import_the_module(around: Neighbours) -> None:
    """The whole package is no neighbour: everything imports it."""
    others = around.others(Path("jmsaio/rules/share.py"))
    assert others == [Path("tests/client/test_session.py"), Path("tests/test_far.py")]


def test_a_package_that_hands_a_module_on_shares_its_neighbours(around: Neighbours) -> None:
    assert Path("tests/client/test_other.py") in around.others(Path("jmsaio/codec/reading.py"))


def test_what_a_conftest_imports_is_tested_by_its_folder(around: Neighbours) -> None:
    assert Path("tests/contract/test_all.py") in around.others(Path("jmsaio/codec/reading.py"))


def test_the_tests_of_a_part_leave_out_its_strangers_and_keep_what_they_share(tmp_path: Path) -> None:
    for name in (
        "jmsaio/transport/memory/a.py", "jmsaio/transport/pulsar/b.py", "jmsaio/client/c.py",
        "tests/transport/memory/test_a.py", "tests/transport/memory/deep/test_x.py", "tests/transport/pulsar/test_b.py",
        "tests/transport/contract/test_all.py", "tests/client/test_c.py", "tests/client/deep/test_d.py",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    around = Neighbours(tmp_path)
    assert [str(path) for path in around.part(Path("jmsaio/transport/memory/a.py"))] == [
        "tests/transport/contract/test_all.py", "tests/transport/memory/deep/test_x.py",
        "tests/transport/memory/test_a.py",
    ]  # fmt: skip
    assert [str(path) for path in around.part(Path("jmsaio/client/c.py"))] == [
        "tests/client/deep/test_d.py", "tests/client/test_c.py",
    ]  # fmt: skip
