"""``jmsaio guide``, and what every guide keeps to."""

import json
import re

import pytest

from jmsaio.cli import main
from jmsaio.cli.guide import guides, title
from tests.support.documents import ROOT


def test_the_list_names_each_guide_with_its_title_in_the_order_of_the_contents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["guide"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    contents = guides()["contents"].read_text(encoding="utf-8")
    assert [entry["name"] for entry in listed] == [
        "contents",
        *re.findall(r"^- \[.+?\]\((.+?)\.md\)", contents, re.MULTILINE),
    ]
    assert all(entry["title"] for entry in listed)


def test_the_contents_have_each_guide_once_with_its_title() -> None:
    folder = ROOT / "jmsaio" / "guide"
    linked = re.findall(r"^- \[(.+)\]\((.+)\): \S", (folder / "contents.md").read_text(encoding="utf-8"), re.MULTILINE)
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md") if path.name != "contents.md"}
    assert sorted(linked) == sorted((title(text), name) for name, text in texts.items())


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
