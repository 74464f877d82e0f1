"""Reads the package's import statements and says where they break the house's rules. Imports nothing of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs

#: Which ring each part of the package stands in; imports point to the same ring or down.
RINGS = {
    **dict.fromkeys(("errors", "config", "model"), 0),
    **dict.fromkeys(("codec", "selector", "rules", "protocol"), 1),
    **dict.fromkeys(("transport",), 2),
    "client": 3,
    **dict.fromkeys(("__init__", "__main__", "cli", "testing", "guide", "demo", "health", "otel"), 4),
    **dict.fromkeys(("launcher", "maintenance"), 4),
    "spark": 4,
}

#: Parts that never import each other: the pure rules, the engines behind the seam, and the users of the seam.
STRANGERS = (
    ("jmsaio.codec", "jmsaio.selector", "jmsaio.rules", "jmsaio.protocol"),
    ("jmsaio.transport.memory", "jmsaio.transport.pulsar"),
    ("jmsaio.transport.pulsar.native", "jmsaio.transport.pulsar.wire"),
    ("jmsaio.client", "jmsaio.spark"),
)

#: The clients of Pulsar, and the only module that imports both; what they share imports neither.
CLIENTS = ("jmsaio.transport.pulsar.native", "jmsaio.transport.pulsar.wire")
CHOICE = "jmsaio.transport.pulsar"

#: Libraries that only some parts may import.
OWNERS = {
    "pulsar": ("jmsaio.transport.pulsar.native",),
    "_pulsar": ("jmsaio.transport.pulsar.native",),
    "httpx": ("jmsaio.transport.pulsar.admin",),
    "lark": ("jmsaio.selector",),
    "click": ("jmsaio.cli",),
    "fastavro": ("jmsaio.codec.schemas",),
    "google_crc32c": ("jmsaio.protocol.framing",),
    "rich": ("jmsaio.cli", "jmsaio.demo", "jmsaio.guide"),
    "matplotlib": ("jmsaio.cli.spark.dlq",),
    "pyarrow": ("jmsaio.spark",),
    "pyspark": ("jmsaio.spark",),
    "threading": ("jmsaio.transport", "jmsaio.launcher"),
    "subprocess": ("jmsaio.launcher",),
}

#: What rings 0 and 1 never import: no await, no thread, no clock, no chance, no log, no wire.
IMPURE = frozenset(
    {"asyncio", "anyio", "threading", "subprocess", "socket", "time", "datetime", "random", "uuid", "logging"}
    | {"httpx", "pulsar", "_pulsar"}
)

#: Modules of these rings that take the classes of dates and times from ``datetime``, and never its clock.
CALENDARS = frozenset({"jmsaio.codec.schemas.reading"})


@attrs.frozen
class Import:
    """One import of one module.

    Attributes:
        line: where.
        target: the module, as precisely as the package's files tell.
        typing_only: it stands under ``if TYPE_CHECKING``.
    """

    line: int
    target: str
    typing_only: bool


@attrs.frozen
class Module:
    """One file of the package.

    Attributes:
        name: dotted name; a package's ``__init__`` has the package's name.
        path: the file.
        imports: all of them, also those inside functions.
        coroutines: lines of ``async def``.
    """

    name: str
    path: Path
    imports: tuple[Import, ...]
    coroutines: tuple[int, ...]

    @property
    def ring(self) -> int | None:
        """The ring it stands in, None when it has no place."""
        parts = self.name.split(".")
        return RINGS.get(parts[1] if len(parts) > 1 else "__init__")


def read(root: Path) -> list[Module]:
    """All modules below ``root/jmsaio``."""
    paths = {_name(root, path): path for path in sorted((root / "jmsaio").rglob("*.py"))}
    modules = []
    for name, path in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = tuple(_imports(name, path, tree, frozenset(paths)))
        coroutines = tuple(node.lineno for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef))
        modules.append(Module(name, path.relative_to(root), imports, coroutines))
    return modules


def _name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, path: Path, tree: ast.Module, known: frozenset[str]) -> Iterator[Import]:
    """Every import in a file; ``from a import b`` is ``a.b`` when that is a module."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and any(_names_typing(inner) for inner in ast.walk(node.test))
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, id(node) in typing_only)
        elif isinstance(node, ast.ImportFrom):
            base = _base(name, path, node)
            targets = {f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names}
            for target in sorted(targets):
                yield Import(node.lineno, target, id(node) in typing_only)


def _names_typing(node: ast.AST) -> bool:
    return "TYPE_CHECKING" in (getattr(node, "id", ""), getattr(node, "attr", ""))


def _base(name: str, path: Path, node: ast.ImportFrom) -> str:
    """The absolute name of the module after ``from``."""
    if not node.level:
        return node.module or ""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, node.module] if node.module else package)


def inside(name: str, part: str) -> bool:
    """Whether a module is a part of the package, or lies in it."""
    return name == part or name.startswith(part + ".")


def homeless(modules: list[Module]) -> list[str]:
    """Modules that stand in no ring."""
    return [f"{module.path} stands in no ring" for module in modules if module.ring is None]


def upward(modules: list[Module]) -> list[str]:
    """Imports that point to a higher ring, or from a part to one that it must not know. Typing counts, too."""
    rings = {module.name: module.ring for module in modules}
    found = []
    for module in modules:
        for each in module.imports:
            ring = rings.get(each.target)
            if ring is not None and module.ring is not None and ring > module.ring:
                found.append(f"{module.path}:{each.line} ring {module.ring} imports {each.target} of ring {ring}")
            for group in STRANGERS:
                mine = next((part for part in group if inside(module.name, part)), None)
                its = next((part for part in group if inside(each.target, part)), None)
                if mine is not None and its is not None and mine != its:
                    found.append(f"{module.path}:{each.line} imports {each.target}, which it must not know")
            if not inside(module.name, "jmsaio.transport") and inside(each.target, CHOICE):
                found.append(f"{module.path}:{each.line} imports {each.target} past the seam")
            if _is_shared(module.name) and any(inside(each.target, client) for client in CLIENTS):
                found.append(f"{module.path}:{each.line} imports {each.target}, a client, into what clients share")
    return found


def _is_shared(name: str) -> bool:
    """Whether a module belongs to what the clients of Pulsar share."""
    return inside(name, CHOICE) and name != CHOICE and not any(inside(name, client) for client in CLIENTS)


def trespassing(modules: list[Module]) -> list[str]:
    """Imports of libraries that belong to another part."""
    found = []
    for module in modules:
        for each in module.imports:
            owners = OWNERS.get(each.target.split(".")[0])
            if owners is not None and not any(inside(module.name, owner) for owner in owners):
                where = f"{module.path}:{each.line}"
                found.append(f"{where} imports {each.target}, which belongs to {' and '.join(owners)}")
    return found


def impure(modules: list[Module]) -> list[str]:
    """Modules of rings 0 and 1 that are coroutines or import something impure."""
    found = []
    for module in modules:
        if module.ring is None or module.ring > 1:
            continue
        found += [
            f"{module.path}:{each.line} imports {each.target} in ring {module.ring}"
            for each in module.imports
            if each.target.split(".")[0] in IMPURE and not each.typing_only
            if not (each.target.split(".")[0] == "datetime" and module.name in CALENDARS)
        ]
        if module.name.startswith("jmsaio.model."):
            continue  # a message's acknowledge() and a temporary destination's delete() are coroutines by contract
        found += [f"{module.path}:{line} is a coroutine in ring {module.ring}" for line in module.coroutines]
    return found


def cycles(modules: list[Module]) -> list[str]:
    """Groups of modules that import each other, directly or around corners; imports for typing count, too."""
    return [
        " <-> ".join(group) for group in _circles(_graph(modules, {module.name: module.name for module in modules}))
    ]


def package_cycles(modules: list[Module]) -> list[str]:
    """Groups of packages that import each other. A package is the modules directly in a folder.

    Modules directly in ``jmsaio/``, such as ``jmsaio.errors``, stand each for itself.
    """
    groups = _circles(_graph(modules, {module.name: _package(module) for module in modules}))
    return [" <-> ".join(group) for group in groups]


def _package(module: Module) -> str:
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    return module.name if package == "jmsaio" else package


def _graph(modules: list[Module], parts: dict[str, str]) -> dict[str, set[str]]:
    """Which part imports which others; ``parts`` says to which one a module belongs."""
    graph: dict[str, set[str]] = {part: set() for part in parts.values()}
    for module in modules:
        graph[parts[module.name]] |= {parts[each.target] for each in module.imports if each.target in parts}
    return {part: targets - {part} for part, targets in graph.items()}


def _circles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    reachable = {part: _reach(graph, part) for part in graph}
    return sorted(
        {
            tuple(sorted(other for other in reachable[part] if part in reachable[other]))
            for part in graph
            if part in reachable[part]
        }
    )


def _reach(graph: dict[str, set[str]], start: str) -> set[str]:
    """Everything that a module brings in, itself only if it comes back to it."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen
