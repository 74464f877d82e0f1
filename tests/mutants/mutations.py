"""The plausible mistakes that can be made in one module, as edits of its text."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise

import attrs

Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}

ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}

#: Calls that are easily taken for each other.
CALLS = {
    "appendleft": "append",
    "extendleft": "extend",
    "popleft": "pop",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "reversed": "list",
}

#: Functions for debugging, whose result nobody relies on.
UNPROMISED = frozenset({"__repr__", "__str__", "__hash__"})
DEBUGGING = re.compile(r"\b_?log(ger)?\.(debug|info)\b")


@attrs.frozen(order=True)
class Edit:
    """Bytes of a file, from ``start`` to ``end``, and what takes their place."""

    start: int
    end: int
    text: str


@attrs.frozen
class Mutation:
    """One plausible mistake.

    Attributes:
        line: first line that it changes, from 1.
        kind: what kind of mistake it is, in a few words.
        edits: the changes, in the order of the text.
    """

    line: int
    kind: str
    edits: tuple[Edit, ...]

    def apply(self, source: str) -> str:
        """The text of the module with the mistake in it."""
        text = source.encode()
        for edit in reversed(self.edits):
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
        return text.decode()

    def shown(self, source: str) -> tuple[str, str]:
        """What stands in the lines that it changes: before, and after."""
        text = source.encode()
        first, last = self.edits[0].start, self.edits[-1].end
        begin = text.rfind(b"\n", 0, first) + 1
        end = text.find(b"\n", last)
        rest = len(text) - (len(text) if end < 0 else end)
        after = self.apply(source).encode()
        return _one_line(text[begin : len(text) - rest]), _one_line(after[begin : len(after) - rest])


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())


def mutations(source: str) -> list[Mutation]:
    """Every mutation of a module, in the order of the text; a few don't compile."""
    return sorted(_Finder(source).found(), key=lambda one: (one.line, one.edits))


def compiles(source: str) -> bool:
    """Whether a text is Python at all."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    """Walks the functions of a module; what stands outside of them is declarations."""

    def __init__(self, source: str) -> None:
        self._text = source.encode()
        self._tree = ast.parse(source)
        self._lines = [0]
        for line in self._text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._finders: dict[type[ast.AST], Callable[..., Iterator[Mutation]]] = {
            ast.If: self._condition,
            ast.IfExp: self._condition,
            ast.While: self._loop,
            ast.Try: self._try,
            ast.BoolOp: self._operands,
            ast.Compare: self._comparison,
            ast.BinOp: self._arithmetic,
            ast.UnaryOp: self._negation,
            ast.Constant: self._constant,
            ast.Call: self._call,
        }

    def found(self) -> Iterator[Mutation]:
        """The mutations, in no order."""
        for node in _functions(self._tree):
            yield from self._block(node.body)
            for statement in node.body:
                yield from self._below(statement)

    def _below(self, node: ast.AST) -> Iterator[Mutation]:
        """The mutations of a node and of all below it, but not of what nobody relies on."""
        if isinstance(
            node, (ast.JoinedStr, ast.Raise, ast.ClassDef, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            if isinstance(node, ast.Lambda):
                yield from self._below(node.body)
            return  # functions within are found by themselves; a message's words are not behaviour
        if isinstance(node, ast.Expr) and (_is_docstring(node) or DEBUGGING.search(self._source(node))):
            return
        finder = self._finders.get(type(node))
        if finder is not None:
            yield from finder(node)
        for block in _blocks(node):
            yield from self._block(block)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "decorator_list", "returns"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._below(child)

    def _block(self, body: list[ast.stmt]) -> Iterator[Mutation]:
        """Statements left out, and neighbours swapped."""
        for statement in body:
            if self._may_be_left_out(statement):
                yield self._replaced(statement, "pass", "left out")
        for first, second in pairwise(body):
            if self._is_call(first) and self._is_call(second):
                start, middle = self._offset(first), self._offset(second)
                edits = (
                    Edit(start, self._end(first), self._source(second)),
                    Edit(middle, self._end(second), self._source(first)),
                )
                yield Mutation(first.lineno, "swapped", edits)

    def _may_be_left_out(self, node: ast.stmt) -> bool:
        """Whether the code still makes sense without a statement: a local variable must be set, a value returned."""
        if isinstance(node, ast.Expr):
            return self._is_call(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)
        if isinstance(node, ast.Return):
            return node.value is None
        return isinstance(node, (ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break))

    def _is_call(self, node: ast.stmt) -> bool:
        called = isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
        return called and not DEBUGGING.search(self._source(node))

    def _condition(self, node: ast.If | ast.IfExp) -> Iterator[Mutation]:
        yield self._replaced(node.test, "True", "always")
        yield self._replaced(node.test, "False", "never")

    def _loop(self, node: ast.While) -> Iterator[Mutation]:
        leaves = any(isinstance(inner, (ast.Break, ast.Continue)) for inner in ast.walk(node))
        if not leaves and not node.orelse:
            start = self._offset(node)
            yield Mutation(node.lineno, "once", (Edit(start, start + len("while"), "if"),))

    def _try(self, node: ast.Try) -> Iterator[Mutation]:
        """What a ``finally`` does happens on success alone."""
        if not node.finalbody:
            return
        after = (node.orelse or node.handlers or node.body)[-1]
        found = re.compile(rb"^\s*(finally)\b", re.MULTILINE).search(self._text, self._end(after))
        if found is None:
            return
        edits = [Edit(*found.span(1), "else" if node.handlers else "if True")]
        if not node.handlers:
            start = self._offset(node)
            edits.insert(0, Edit(start, start + len("try"), "if True"))
        yield Mutation(node.lineno, "finally only on success", tuple(edits))

    def _operands(self, node: ast.BoolOp) -> Iterator[Mutation]:
        values = [self._source(value) for value in node.values]
        word, other = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
        yield self._replaced(node, f"({other.join(f'({value})' for value in values)})", other.strip())
        for index in range(len(values)):
            rest = word.join(f"({value})" for value in [*values[:index], *values[index + 1 :]])
            yield self._replaced(node, f"({rest})", "operand left out")

    def _comparison(self, node: ast.Compare) -> Iterator[Mutation]:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            edit = Edit(self._end(left), self._offset(right), "")
            between = self._text[edit.start : edit.end].decode()
            if between.strip("() \n") != between.strip():
                continue  # parentheses around an operand
            words = COMPARISONS[type(operator)]
            yield Mutation(left.lineno, "comparison", (attrs.evolve(edit, text=f" {words} "),))

    def _arithmetic(self, node: ast.BinOp) -> Iterator[Mutation]:
        sign = ARITHMETIC.get(type(node.op))
        edit = Edit(self._end(node.left), self._offset(node.right), f" {sign} ")
        if sign is not None and not set("()") & set(self._text[edit.start : edit.end].decode()):
            yield Mutation(node.lineno, "arithmetic", (edit,))

    def _negation(self, node: ast.UnaryOp) -> Iterator[Mutation]:
        if isinstance(node.op, ast.Not):
            yield self._replaced(node, f"({self._source(node.operand)})", "not left out")

    def _constant(self, node: ast.Constant) -> Iterator[Mutation]:
        if isinstance(node.value, bool):
            yield self._replaced(node, str(not node.value), "flag")
        elif isinstance(node.value, int):
            yield self._replaced(node, str(node.value + 1), "off by one")

    def _call(self, node: ast.Call) -> Iterator[Mutation]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in CALLS:
            end = self._end(node.func)
            yield Mutation(node.lineno, "another call", (Edit(end - len(name), end, CALLS[name]),))
        for keyword in node.keywords:
            if keyword.arg is not None:
                start, end = self._offset(keyword), self._end(keyword)
                comma = re.compile(rb"\s*,").match(self._text, end)
                yield Mutation(keyword.lineno, "argument left out", (Edit(start, comma.end() if comma else end, ""),))

    def _replaced(self, node: ast.expr | ast.stmt, text: str, kind: str) -> Mutation:
        return Mutation(node.lineno, kind, (Edit(self._offset(node), self._end(node), text),))

    def _offset(self, node: ast.expr | ast.stmt | ast.keyword | ast.excepthandler) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt | ast.keyword | ast.excepthandler) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def _source(self, node: ast.expr | ast.stmt) -> str:
        return self._text[self._offset(node) : self._end(node)].decode()


def _functions(tree: ast.AST) -> Iterator[Function]:
    """The functions of a module whose behaviour is promised, the inner ones too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
            if node.name in UNPROMISED or marks & {"overload", "abstractmethod"}:
                continue
            yield node
        yield from _functions(node)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value


def _is_docstring(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, (str, type(...)))
