"""``jmsaio guide``, and what every guide keeps to."""

import json
import re

import pytest

from jmsaio.cli import main
from jmsaio.cli.guide import guides, title


def test_the_list_names_each_guide_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guide"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["name"] for entry in listed] == [
        "benchmark", "compatibility", "configuration", "design", "migrating", "releasing", "reliability",
        "selectors", "spark", "testing", "wire-format",
    ]  # fmt: skip
    assert all(entry["title"] for entry in listed)


@pytest.mark.parametrize("name", sorted(guides()))
def test_raw_and_rendered(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = guides()[name].read_text(encoding="utf-8")
    assert main(["guide", name]) == 0
    assert capsys.readouterr().out == text
    assert main(["guide", f"{name}.md", "--rendered"]) == 0
    rendered = capsys.readouterr().out
    assert title(text) in rendered
    assert "```" not in rendered


@pytest.mark.parametrize("name", sorted(guides()))
def test_other_guides_that_a_guide_names_exist(name: str) -> None:
    text = guides()[name].read_text(encoding="utf-8")
    assert set(re.findall(r"jmsaio guide ([a-z-]+)", text)) <= set(guides())
