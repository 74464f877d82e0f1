"""Syntax tree to Python source: one function for each selector, which reads the texts of a record.

It is one expression per term of the outermost AND or OR, with a return as soon as the result is known. A
term of the form ``name operator literal`` reads the raw property, checks whether the type mark is the usual one, and
compares in place; everything else uses the functions of `evaluation`. Results are True, False and None.
Names and strings of the selector are inserted into the source through ``repr`` only.

Operands of impossible types are refused on the way (Jakarta Messaging 3.1, 3.8.1 Message selector). A name can have any
type until a message is evaluated; the types of literals, arithmetic and conditions are known at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from jmsaio.model.headers import FIELDS
from jmsaio.model.values import Double, Float
from jmsaio.model.wire import TYPE_SUFFIX, TYPE_SUFFIX_READ, ReceivedRecord
from jmsaio.selector import evaluation, nodes
from jmsaio.selector.nodes import Node, Refused
from jmsaio.selector.parser import BEYOND

#: Returns the value of a JMS header, or of a property JMSX, of a record.
ReadHeader = Callable[[ReceivedRecord, str], object]
Matches = Callable[[ReceivedRecord, ReadHeader], bool | None]

#: Headers that selectors can't use.
FORBIDDEN: Final = frozenset(header.name for header in FIELDS if not header.selectable)
_ALLOWED: Final = [header.name for header in FIELDS if header.selectable]

#: Values of short texts, whose look-up is faster than parsing.
_SMALL: Final = {str(value): value for value in range(1_000)}
#: Maximum nesting of a generated expression before a part becomes a separate function: Python limits parentheses.
_MOST_NESTING = 10
_FLIPPED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PYTHON: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_GLOBALS: Final[dict[str, object]] = {
    "__builtins__": {}, "int": int, "len": len, "type": type, "str": str, "float": float,
    "typed": evaluation.typed, "load": evaluation.load, "plain": evaluation.plain,
    "between": evaluation.between, "not_between": evaluation.not_between, "inside": evaluation.inside,
    "truth": evaluation.truth, "opposite": evaluation.opposite, "negate": evaluation.negate,
    "positive": evaluation.positive, "combine": evaluation.combine, "fold": evaluation.fold, "small": _SMALL.get,
    **{function.__name__: function for function in evaluation.COMPARISONS.values()},
}  # fmt: skip


def compile_selector(tree: Node) -> Matches:
    """Compile a tree. Raises Refused, with the offset of the operand, for one that can't have the required type."""
    return _Source().compiled(tree)  # type: ignore[no-any-return]  # made by exec


class _Source:
    """The text of the function while it is written."""

    def __init__(self) -> None:
        self.globals = dict(_GLOBALS)
        self.parts: list[str] = []
        self.count = 0

    def compiled(self, tree: Node) -> Any:
        tree = nodes.bare(tree)
        if isinstance(tree, (nodes.And, nodes.Or)):
            body = self.sequence(tree)
        else:
            body = [f"return {self.condition(tree, 0, 'the selector')}"]
        lines = ["def evaluate(record, header):", " get = record.get", *(f" {line}" for line in body)]
        exec(compile("\n".join((*self.parts, *lines)), "<selector>", "exec"), self.globals)
        return self.globals["evaluate"]

    def sequence(self, tree: nodes.And | nodes.Or) -> list[str]:
        """Write the terms of the outermost AND (OR): return at the first FALSE (TRUE), remember UNKNOWN."""
        word, ends, other = ("AND", "False", "True") if isinstance(tree, nodes.And) else ("OR", "True", "False")
        lines = ["unknown = False"]
        for term in tree.terms:
            lines += [
                f"t = {self.condition(term, 0, f'each side of {word}')}",
                f"if t is not {other}:",
                f" if t is {ends}: return {ends}",
                " unknown = True",
            ]
        return [*lines, f"return None if unknown else {other}"]

    # Conditions

    def condition(self, node: Node, level: int, where: str) -> str:
        """Return an expression with the value True, False or None; ``where`` names the node in an error."""
        node = nodes.bare(node)
        if level >= _MOST_NESTING:
            return self.part(self.condition(node, 0, where))
        match node:
            case nodes.And(terms=terms) | nodes.Or(terms=terms):
                return self.joined(terms, isinstance(node, nodes.And), level)
            case nodes.Not(operand=operand):
                return f"opposite({self.condition(operand, level + 1, 'the operand of NOT')})"
            case nodes.Compare():
                return self.comparison(node, level + 1)
            case nodes.Between(subject=subject, low=low, high=high, negated=negated):
                where = "each operand of BETWEEN"
                operands = ", ".join(self.number(part, level + 1, where) for part in (subject, low, high))
                return f"{'not_between' if negated else 'between'}({operands})"
            case nodes.In():
                return self.membership(node)
            case nodes.Like():
                return self.likeness(node)
            case nodes.IsNull(subject=subject, negated=negated):
                return f"({self.raw(_identifier(subject, 'IS NULL'))} is {'not ' if negated else ''}None)"
            case nodes.Literal(value=bool(value)):
                return repr(value)
            case nodes.Name():
                return f"truth({self.typed(_name(node))})"
        raise Refused(f"{where} must be a condition, this is {_describe(node)}", node.at)

    def joined(self, terms: tuple[Node, ...], conjunction: bool, level: int) -> str:
        """Return an AND or OR inside another condition, as a balanced tree of pairs."""
        word, ends, other = ("AND", "False", "True") if conjunction else ("OR", "True", "False")
        if len(terms) == 1:
            return self.condition(terms[0], level, f"each side of {word}")
        if level >= _MOST_NESTING:
            return self.part(self.joined(terms, conjunction, 0))
        half = len(terms) // 2
        left = self.joined(terms[:half], conjunction, level + 1)
        right = self.joined(terms[half:], conjunction, level + 1)
        first, second = self.fresh(), self.fresh()
        return (
            f"({ends} if ({first} := {left}) is {ends} else {first} if ({second} := {right}) is {other} else {second})"
        )

    def comparison(self, node: nodes.Compare, level: int) -> str:
        operator, left, right = node.operator, nodes.bare(node.left), nodes.bare(node.right)
        if operator in ("=", "<>"):
            one, other = (self.value(side, level, "each side of the comparison") for side in (left, right))
            _check_families(left, right, operator)
        else:
            one, other = (self.number(side, level, f"each side of {operator}") for side in (left, right))
        if isinstance(left, nodes.Literal) and isinstance(right, nodes.Name):
            operator, left, right = _FLIPPED[operator], right, left
        function = evaluation.COMPARISONS[operator].__name__
        if isinstance(left, nodes.Name) and isinstance(right, nodes.Literal):
            return self.against(left.name, _PYTHON[operator], function, right.value)
        return f"{function}({one}, {other})"

    # Operands: expressions with a canonical value, None or MISMATCH

    def value(self, node: Node, level: int, where: str) -> str:
        """Return an operand of ``=`` or ``<>``: a string, number, Boolean, or a condition in parentheses."""
        match nodes.bare(node):
            case nodes.Literal(value=value):
                return self.constant(_in_range(value, node.at))
            case nodes.Name() | nodes.Sign() | nodes.Arithmetic():
                return self.number(node, level, where)
        return self.condition(node, level, where)

    def number(self, node: Node, level: int, where: str) -> str:
        """Return an operand that is a number, or a name, which might be one."""
        if level >= _MOST_NESTING:
            return self.part(self.number(node, 0, where))
        match nodes.bare(node):
            case nodes.Name() as name:
                return self.typed(_name(name))
            case nodes.Literal(value=int() | float() as value) if not isinstance(value, bool):
                return self.constant(_in_range(value, node.at))
            case nodes.Sign(sign=sign, operand=operand):
                inner = self.number(operand, level + 1, f"the operand of {sign}")
                return f"{'negate' if sign == '-' else 'positive'}({inner})"
            case nodes.Arithmetic(first=first, rest=rest):
                parts = ((rest[0][0], first), *rest)
                texts = [self.number(part, level + 1, f"each side of {operator}") for operator, part in parts]
                if len(rest) == 1:
                    return f"combine({rest[0][0]!r}, {texts[0]}, {texts[1]})"
                return f"fold({self.constant(tuple(operator for operator, _ in rest))}, ({', '.join(texts)}))"
            case other:
                raise Refused(f"{where} must be a number or a name, this is {_describe(other)}", node.at)

    def likeness(self, node: nodes.Like) -> str:
        """Return a LIKE with a precompiled test; anything but a string is FALSE for both forms."""
        name = _identifier(node.subject, "LIKE")
        escape = None if node.escape is None else str(node.escape.value)
        test = self.constant(evaluation.matcher(str(node.pattern.value), escape))
        value = self.fresh()
        return (
            f"(None if ({value} := {self.typed(name)}) is None "
            f"else type({value}) is str and {'not ' if node.negated else ''}{test}({value}))"
        )

    def constant(self, value: object) -> str:
        if type(value) in (int, str, bool):
            return repr(value)
        name = f"c{len(self.globals)}"
        self.globals[name] = value
        return name

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def part(self, expression: str) -> str:
        name = f"part{len(self.parts)}"
        self.parts.append(f"def {name}(get, record, header): return {expression}")
        return f"{name}(get, record, header)"

    # Names

    def raw(self, name: str) -> str:
        """Return the unconverted value of a name; None if it is missing."""
        return f"header(record, {name!r})" if _is_header(name) else f"get({name!r})"

    def typed(self, name: str) -> str:
        """Return the canonical value of a name."""
        return f"plain({self.raw(name)})" if _is_header(name) else f"load(get, {name!r}, {_marks(name)})"

    def against(self, name: str, operator: str, function: str, literal: object) -> str:
        """Compare a name with a literal: in place if the value has the literal's type."""
        constant = self.constant(literal)
        if type(literal) is not str and not _is_number(literal):
            return f"{function}({self.typed(name)}, {constant})"
        value = self.fresh()
        slow = f"{function}(typed(get, {value}, {_marks(name)}), {constant})"
        if _is_header(name):
            kind = "str" if type(literal) is str else "float" if type(literal) is float else "int"
            fast = f"{value} {operator} {constant if kind == 'str' else _digits(literal)}"
            usual = f"type({value}) is {kind}"
            slow = f"{function}(plain({value}), {constant})"
        elif type(literal) is str:
            fast, usual = f"{value} {operator} {constant}", _unmarked(name)
        else:
            # Up to nine digits an int or long is exact in every type, so Python's comparison equals Java's.
            mark, known = self.fresh(), self.fresh()
            usual = f"({mark} := get({name + TYPE_SUFFIX!r})) == 'int' or {mark} == 'long'"
            test = f"{operator} {_digits(literal)}"
            short = f"int({value}) {test} if {value}.isdecimal() and len({value}) < 10 else {slow}"
            fast = f"({known} {test} if ({known} := small({value})) is not None else {short})"
        return f"(None if ({value} := {self.raw(name)}) is None else {fast} if {usual} else {slow})"

    def membership(self, node: nodes.In) -> str:
        name, values = _identifier(node.subject, "IN"), self.constant(frozenset(node.values))
        slow = f"inside({self.typed(name)}, {values})"
        slow = f"opposite({slow})" if node.negated else slow
        if _is_header(name):
            return slow
        value = self.fresh()
        fast = f"{value} {'not in' if node.negated else 'in'} {values}"
        return f"(None if ({value} := get({name!r})) is None else {fast} if {_unmarked(name)} else {slow})"


def _check_families(left: Node, right: Node, operator: str) -> None:
    """Refuse a Boolean literal compared with another literal: TRUE and FALSE are not names of properties."""
    match left, right:
        case nodes.Literal(value=one), nodes.Literal(value=other) if isinstance(one, bool) is not isinstance(
            other, bool
        ):
            reason = f"{_describe(left)} {operator} {_describe(right)} compares a Boolean with a non-Boolean"
            raise Refused(f"{reason}; TRUE and FALSE can't be names", left.at)


def _identifier(node: Node, word: str) -> str:
    if not isinstance(node, nodes.Name):
        what = f"{_describe(node)}{' in parentheses' if isinstance(node, nodes.Parentheses) else ''}"
        raise Refused(f"the left side of {word} must be the name of a header or property, this is {what}", node.at)
    return _name(node)


def _name(node: nodes.Name) -> str:
    if node.name in FORBIDDEN:
        allowed = f"{', '.join(_ALLOWED[:-1])} and {_ALLOWED[-1]}"
        raise Refused(f"the header {node.name} can't be used in a selector; allowed are {allowed}", node.at)
    return node.name


def _in_range(value: object, at: int) -> object:
    if value is BEYOND:
        raise Refused("9223372036854775808 fits in 64 bits only directly after a minus", at)
    return value


def _describe(node: Node) -> str:
    match nodes.bare(node):
        case nodes.Literal(value=bool(value)):
            return str(value).upper()
        case nodes.Literal(value=str()):
            return "a string"
        case nodes.Literal():
            return "a number"
        case nodes.Name(name=name):
            return f"the name {name}"
        case nodes.Sign() | nodes.Arithmetic():
            return "arithmetic"
    return "a condition"


def _is_header(name: str) -> bool:
    return name in evaluation.HEADERS or name in evaluation.PROVIDED


def _digits(literal: object) -> str:
    return int.__repr__(literal) if isinstance(literal, int) else float.__repr__(literal)


def _is_number(literal: object) -> bool:
    """Return whether Python compares a literal with integers as Java does; a Float is rounded and excluded."""
    return isinstance(literal, (int, float)) and not isinstance(literal, (bool, Float, Double))


def _marks(name: str) -> str:
    return f"{name + TYPE_SUFFIX!r}, {name + TYPE_SUFFIX_READ!r}"


def _unmarked(name: str) -> str:
    """Return an expression that is true if the property is a String: it has no type mark in either spelling."""
    return f"get({name + TYPE_SUFFIX!r}) is None and get({name + TYPE_SUFFIX_READ!r}) is None"
