"""Takes the README and the guides apart: code blocks, commands, links.

A comment in the line before a block steers what happens to it::

    <!-- not executed: the reason -->     the block is only compiled
    <!-- continues -->                    the block runs after the executed one before it in its language
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\s*$")
_NOT_EXECUTED = re.compile(r"^<!-- not executed: (\S.*) -->$")
_CONTINUES = "<!-- continues -->"


@attrs.frozen
class Block:
    """A fenced block.

    Attributes:
        path: the document, below the project's root.
        line: line of its first line of text.
        language: the word after the fence.
        text: what is in it; with all that it continues.
        executed: False when a comment says so.
    """

    path: Path
    line: int
    language: str
    text: str
    executed: bool = True

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def needs_spark(self) -> bool:
        """Whether it can run, or be type checked, only where the extra ``spark`` is installed: the commands have it."""
        return "pyspark" in self.text or "jmsaio.cli" in self.text


def documents() -> list[Path]:
    """The README, all guides, and what contributors read."""
    return [
        ROOT / "README.md",
        *sorted((ROOT / "jmsaio" / "guide").glob("*.md")),
        ROOT / ".github" / "CONTRIBUTING.md",
        ROOT / ".github" / "SECURITY.md",
    ]


def blocks(path: Path, text: str) -> Iterator[Block]:
    """All fenced blocks of a document.

    Raises:
        ValueError: a block is not closed.
    """
    lines = text.splitlines()
    start: int | None = None
    language, previous = "", defaultdict[str, str](str)
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if start is None:
            start, language = number, fence[1]
            continue
        comment = lines[start - 1].strip() if start > 0 else ""
        body = "\n".join(lines[start + 1 : number]) + "\n"
        if comment == _CONTINUES:
            body = previous[language] + body
        block = Block(path, start + 2, language, body, _NOT_EXECUTED.match(comment) is None)
        yield block
        if block.executed:
            previous[language] = body
        start = None
    if start is not None:
        raise ValueError(f"{path}:{start + 1} block is not closed")


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of these languages in all documents."""
    found = []
    for path in documents():
        if path.exists():
            text = path.read_text(encoding="utf-8")
            found += [block for block in blocks(path.relative_to(ROOT), text) if block.language in languages]
    return found


def commands(block: Block) -> list[list[str]]:
    """The words of each ``jmsaio`` command in a shell block; what stands behind a pipe or a redirection is left out."""
    found = []
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        parts: list[list[str]] = [[]]
        for word in words:
            if word in ("&&", "||", ";", "|", "&"):
                parts.append([])
            else:
                parts[-1].append(word)
        for part in parts:
            stop = next((index for index, word in enumerate(part) if word.startswith((">", "<", "2>"))), len(part))
            if part[:stop] and part[0] == "jmsaio":
                found.append(part[1:stop])
    return found


def links(text: str) -> list[str]:
    """The targets of links to files of the project."""
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    local = [target for target in targets if "://" not in target and not target.startswith(("#", "mailto:"))]
    return [target.split("#")[0] for target in local]
