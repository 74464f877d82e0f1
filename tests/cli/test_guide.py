"""``jmsaio guide``, and what every guide keeps to."""

import json
import re

import pytest

from jmsaio.cli import main
from jmsaio.cli.guide import excerpts, guides, title
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


def test_terms_choose_the_parts_that_have_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of a table with its head, items of a list, paragraphs and code, each once below its heading."""
    assert main(["guide", "configuration", "JMSAIO_url"]) == 0
    shown = capsys.readouterr().out
    assert "| variable | meaning |\n|---|---|\n| `JMSAIO_URL` | the broker when none is given |" in shown
    assert "\n\n## Rules\n\n- A keyword argument overrides" in shown
    assert "BROWSER" not in shown and shown.count("## Rules") == 1
    assert main(["guide", "configuration", "max_total", "prefetched"]) == 0
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    assert row.startswith("| `maxTotalReceiverQueueSizeAcrossPartitions` |")
    assert main(["guide", "configuration", "nosuchterm", "nor this"]) == 3
    assert "has 'nosuchterm' and 'nor this'" in capsys.readouterr().err


def test_a_term_in_a_heading_shows_its_section_and_code_stays_whole() -> None:
    text = "# A\n\none\n\n## Bees\n\nhoney\n\n```python\n# no heading\n\n- no item\n```\n\n- x\n- y\n\n## C\n\nwax\n"
    assert excerpts(text, ["BEES"]) == ("## Bees\n\nhoney\n\n```python\n# no heading\n\n- no item\n```\n\n- x\n\n- y")
    assert excerpts(text, ["heading", "item"]) == "## Bees\n\n```python\n# no heading\n\n- no item\n```"
    assert excerpts(text, ["wax"]) == "## C\n\nwax"
    assert excerpts(text, ["wax", "honey"]) == ""


@pytest.mark.parametrize("name", sorted(guides()))
def test_every_line_of_a_guide_is_in_one_of_its_parts(name: str) -> None:
    text = guides()[name].read_text(encoding="utf-8")
    headings = {line for line in text.splitlines() if line.startswith("#")}
    shown = excerpts(text, [""]).splitlines()
    assert {line for line in text.splitlines() if line.strip()} - headings <= set(shown)


@pytest.mark.parametrize("name", sorted(guides()))
def test_other_guides_that_a_guide_names_exist(name: str) -> None:
    text = guides()[name].read_text(encoding="utf-8")
    assert set(re.findall(r"jmsaio guide ([a-z-]+)", text)) <= set(guides())
