"""The site shows every guide and every public name, and loads nothing from elsewhere.

In continuous integration mkdocs builds all of it, strictly, and a browser looks at each page.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

import jmsaio
import jmsaio.testing
from tests.support.documents import ROOT, all_blocks
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


#: Words that Mermaid's flowcharts don't accept as the name of a node.
RESERVED = {"call", "class", "classDef", "click", "default", "end", "graph", "href", "style", "subgraph"}


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


def test_no_node_of_a_diagram_has_the_name_of_a_keyword() -> None:
    diagrams = [block for block in all_blocks("mermaid") if block.text.startswith("flowchart")]
    assert len(diagrams) > 4
    nodes = {
        name for block in diagrams for name in re.findall(r"^ *(?:subgraph )?(\w+)(?= -|\[)", block.text, re.MULTILINE)
    }
    assert {"connection", "native"} <= nodes
    assert nodes & RESERVED == set()


@pytest.mark.parametrize(
    ("origin", "address"),
    [
        ("https://git.example/team/jmsaio.git", "https://git.example/team/jmsaio"),
        ("https://user:secret@git.example/team/jmsaio", "https://git.example/team/jmsaio"),
        ("git@git.example:team/jmsaio.git", "https://git.example/team/jmsaio"),
        ("ssh://git@git.example/team/jmsaio.git", "https://git.example/team/jmsaio"),
        ("/home/me/jmsaio", None),
        ("", None),
    ],
)
def test_the_repository_is_where_the_checkout_came_from(hooks: ModuleType, origin: str, address: str | None) -> None:
    assert hooks.repository(origin) == address


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, without the docstrings of its reference, from a checkout of a repository with a web address."""
    mkdocs = pytest.importorskip("mkdocs.commands.build", reason="the extra docs is not installed")
    load_config = importlib.import_module("mkdocs.config").load_config
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_COUNT", "1")
        patch.setenv("GIT_CONFIG_KEY_0", "remote.origin.url")
        patch.setenv("GIT_CONFIG_VALUE_0", "https://git.example/team/jmsaio.git")
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config(str(ROOT / ".mkdocs" / "mkdocs.yml"), site_dir=str(folder), plugins=["search"])
        config.plugins.on_startup(command="build", dirty=False)
        mkdocs.build(config)
    return folder


@pytest.mark.slow
def test_pages_load_no_scripts_styles_or_pictures_of_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(GUIDES)
    loaded = re.compile(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*stylesheet[^>]*')
    found = [match[0] for page in pages for match in loaded.finditer(page.read_text(encoding="utf-8"))]
    assert found
    assert [tag for tag in found if re.search(r'="(?:https?:)?//', tag)] == []


@pytest.mark.slow
def test_a_page_with_a_diagram_loads_mermaid_before_the_theme_does(site: Path, hooks: ModuleType) -> None:
    drawn = [block.path.name for block in all_blocks("mermaid")]
    for name in GUIDES:
        text = (site / name).with_suffix(".html").read_text(encoding="utf-8")
        scripts = re.findall(r'<script src="([^"]+)"', text)
        assert [script for script in scripts if "mermaid" in script] == [hooks.SCRIPT] * (name in drawn), name
        assert "javascripts/bundle" in scripts[-1]
    assert hashlib.sha256((site / hooks.SCRIPT).read_bytes()).hexdigest() == hooks.MERMAID_SHA256


@pytest.mark.slow
def test_pages_link_to_the_repository_and_offer_light_and_dark_colours_and_the_search(site: Path) -> None:
    for name in ("index.html", "services.html", "api/client.html"):
        text = (site / name).read_text(encoding="utf-8")
        assert re.search(r'<a href="https://git\.example/team/jmsaio"[^>]*class="md-source"', text)
        media = re.findall(r'data-md-color-media="([^"]*)" data-md-color-scheme="(\w+)"', text)
        assert media == [
            ("(prefers-color-scheme)", "default"),
            ("(prefers-color-scheme: light)", "default"),
            ("(prefers-color-scheme: dark)", "slate"),
        ]
        assert 'data-md-component="search"' in text


@pytest.mark.slow
def test_long_lines_of_code_wrap_and_pictures_do_not(site: Path, hooks: ModuleType) -> None:
    style = (site / hooks.STYLE).read_text(encoding="utf-8")
    assert re.search(r"pre > code \{[^}]*white-space: pre-wrap;", style)
    assert re.search(r"\.language-text pre > code \{[^}]*white-space: pre;", style)
    text = (site / "index.html").read_text(encoding="utf-8")
    assert f'href="{hooks.STYLE}"' in text
    assert '<div class="language-text highlight"><pre>' in text  # the style's name for pictures made of characters


@pytest.mark.slow
def test_each_page_shows_the_version(site: Path) -> None:
    for page in ("index.html", "services.html"):
        text = (site / page).read_text(encoding="utf-8")
        [title] = re.findall(r"<title>(.*)</title>", text)
        assert title.endswith(f"jmsaio {jmsaio.__version__}")
        assert re.search(rf'<span class="md-ellipsis">\s*jmsaio {re.escape(jmsaio.__version__)}\s*</span>', text)


def test_another_script_than_the_expected_one_is_refused(
    hooks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    monkeypatch.setattr(hooks, "_delivered", lambda: b"another")
    with pytest.raises(ValueError, match="is not the one that"):
        hooks.mermaid()
    assert list(tmp_path.rglob("*.js")) == []
