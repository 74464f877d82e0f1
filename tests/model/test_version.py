from __future__ import annotations

import re

import jmsaio


def test_the_version_is_one_that_pypi_takes() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", jmsaio.__version__)
