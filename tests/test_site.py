"""The site shows every guide and every public name; mkdocs itself builds it, strictly, in continuous integration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

import pytest

import jmsaio
import jmsaio.testing
from tests.support.documents import ROOT
from tests.support.scripts import load

GUIDES = sorted(path.name for path in (ROOT / "jmsaio" / "guide").glob("*.md"))
PICTURES = [path.name for path in (ROOT / "jmsaio" / "guide").glob("*.svg")]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """The site's hooks, which need no mkdocs before it calls them."""
    return load(".mkdocs/hooks.py")


def test_the_reference_has_each_public_name_once(hooks: ModuleType) -> None:
    shown = [name for text in hooks.reference().values() for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]
    modules = {"jmsaio.errors", "jmsaio.testing"}
    public = [f"jmsaio.{name}" for name in jmsaio.__all__ if not name.startswith("_")]
    public += [f"jmsaio.testing.{name}" for name in jmsaio.testing.__all__]
    assert sorted(name for name in shown if name not in modules) == sorted(public)
    assert modules <= set(shown)


def leaves(navigation: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """The pages of a navigation, in its order."""
    for entry in navigation:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                assert isinstance(value, list)
                yield from leaves(value)


def test_the_navigation_leads_to_each_page_once(hooks: ModuleType) -> None:
    assert sorted(leaves(hooks.navigation())) == sorted([*GUIDES, *hooks.pages()])


def test_the_parts_of_the_navigation_are_those_of_users_and_of_contributors(hooks: ModuleType) -> None:
    parts = {name: value for entry in hooks.navigation() for name, value in entry.items()}
    assert list(parts) == ["Home", "Guides", "API reference", "Contributors", "Changelog"]
    assert [name for entry in parts["Guides"] for name in entry] == [
        "Contents", "Start", "Services", "Connecting securely", "Running in production", "Transactions", "Testing",
        "Migrating from Java", "Spark", "Operators", "Reference",
    ]  # fmt: skip
    assert set(leaves(parts["Contributors"])) == {
        "design.md", "wire-format.md", "releasing.md", "contributing.md", "vulnerabilities.md",
    }  # fmt: skip


def test_no_page_takes_the_place_of_a_guide(hooks: ModuleType) -> None:
    assert set(hooks.pages()) & set(GUIDES) == set()


def test_links_of_the_readme_lead_to_pages_and_pictures_of_the_site(hooks: ModuleType) -> None:
    text = hooks.document("README.md")
    targets = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert targets
    assert set(targets) <= {*GUIDES, *PICTURES, *hooks.pages()}
