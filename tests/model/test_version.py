from __future__ import annotations

import re

import jmsaio


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|(a|b|rc)\d+)?", jmsaio.__version__)
