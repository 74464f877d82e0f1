"""Makes the site's navigation and each page that is not a guide; a new guide or public name appears by itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import jmsaio
import jmsaio.testing

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
GUIDES = ROOT / "jmsaio" / "guide"
#: Pages made from other documents of the project.
DOCUMENTS = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": ".github/CONTRIBUTING.md",
    "vulnerabilities.md": ".github/SECURITY.md",
}
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> dict[str, str]:
    """Return the Markdown of each page that is not a guide, by its path below the site."""
    return {page: document(source) for page, source in DOCUMENTS.items()} | reference()


def document(source: str) -> str:
    """Return a document of the project; its links to other documents lead to their pages."""
    guides = {path: path.name for pattern in ("*.md", "*.svg") for path in GUIDES.glob(pattern)}
    paths = {ROOT / path: page for page, path in DOCUMENTS.items()} | guides
    folder = (ROOT / source).parent

    def moved(link: re.Match[str]) -> str:
        path, mark, anchor = link[1].partition("#")
        page = paths.get((folder / path).resolve())
        return link[0] if page is None else f"]({page}{mark}{anchor})"

    return _LINK.sub(moved, (ROOT / source).read_text(encoding="utf-8"))


def reference() -> dict[str, str]:
    """Return the pages of the API reference: every name that ``jmsaio`` and ``jmsaio.testing`` export."""
    names = [name for name in jmsaio.__all__ if not name.startswith("_")]
    errors = [name for name in names if _is_error(getattr(jmsaio, name))]
    messages = [name for name in names if name not in errors and name not in jmsaio._CLIENT]
    others = [name for name in names if name not in errors and name not in messages]
    return {
        "api/client.md": _page("Connections, sessions, producers, consumers", jmsaio, others),
        "api/messages.md": _page("Messages, destinations, selectors", jmsaio, messages),
        "api/errors.md": _page("Errors", jmsaio, errors, about="jmsaio.errors", inherited=False),
        "api/testing.md": _page("Testing", jmsaio.testing, jmsaio.testing.__all__, about="jmsaio.testing"),
    }


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def _page(
    title: str, module: ModuleType, names: Iterable[str], *, about: str | None = None, inherited: bool = True
) -> str:
    """Return a page of the reference.

    Args:
        title: its heading.
        module: the module that exports the names.
        names: what it documents.
        about: a module whose docstring comes first.
        inherited: whether each class shows what it inherits.
    """
    parts = [f"# {title}"]
    if about is not None:
        parts.append(f"::: {about}\n    options:\n      members: false\n      show_root_heading: false")
    options = "" if inherited else "\n    options:\n      inherited_members: false"
    parts += [f"::: {module.__name__}.{name}{options}" for name in names]
    return "\n\n".join(parts) + "\n"


def title(text: str) -> str:
    """Return the first heading of a page."""
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))


def sections() -> dict[str, list[str]]:
    """Return the guides below each heading of the page ``contents``."""
    found: dict[str, list[str]] = {}
    for line in (GUIDES / "contents.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found[line.removeprefix("## ")] = []
        elif link := re.match(r"- \[.+?\]\((.+?)\)", line):
            found[next(reversed(found))].append(link[1])
    return found


def navigation() -> list[Mapping[str, object]]:
    """Return the parts of the site, the sections of each part and the pages in each section, all with their titles."""
    made = pages()

    def titled(page: str) -> dict[str, str]:
        return {title(made[page] if page in made else (GUIDES / page).read_text(encoding="utf-8")): page}

    guides = sections()
    contributors = [*guides.pop("For contributors"), "contributing.md", "vulnerabilities.md"]
    users = [{name: of[0] if len(of) == 1 else [titled(page) for page in of]} for name, of in guides.items()]
    return [
        {"Home": "index.md"},
        {"Guides": [{"Contents": "contents.md"}, *users]},
        {"API reference": [titled(page) for page in reference()]},
        {"Contributors": [titled(page) for page in contributors]},
        {"Changelog": "changelog.md"},
    ]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation. mkdocs calls it."""
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not guides. mkdocs calls it."""
    from mkdocs.structure.files import File

    for page, text in pages().items():
        files.append(File.generated(config, page, content=text))
    return files
