"""Syntax tree of the Starlight dialect to nested functions, with the checks of the Java parser.

Every part becomes an evaluator, a function of a look-up of names. The engine evaluates a condition in two ways, which
differ in the effect of an error or NULL in one term on the others: ``evaluate`` evaluates all terms of an AND until one
is FALSE, ``matches`` stops at the first that is not TRUE. The plugin selects by ``matches``; ``evaluate`` only
distinguishes FALSE from UNKNOWN if it does not select.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsaio.errors import SelectorRuntimeError
from jmsaio.selector.like import compiled
from jmsaio.selector.nodes import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Name,
    Node,
    Not,
    Or,
    Sign,
    plain,
)
from jmsaio.selector.refusal import Refused
from jmsaio.selector.starlight import functions, like, values
from jmsaio.selector.starlight.functions import Evaluator, Look
from jmsaio.selector.starlight.values import Value

Answer = bool | None

_TESTS: Final[dict[str, Callable[[int], bool]]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def compile_tree(tree: Node, *, convert: bool) -> Callable[[Look], Answer]:
    """Compile the result of a selector to a function of a look-up.

    Args:
        tree: parsed by the Starlight grammar.
        convert: whether the text began with ``convert_string_expressions:``.

    Raises:
        Refused: the Java parser refuses it, or it has a regular expression that is not supported.
    """
    compiler = _Compiler(convert)
    tree = plain(tree)
    evaluate = compiler.condition(tree)
    if not isinstance(tree, (And, Or, Between)):
        return lambda look: _answer(evaluate(look))
    matches = compiler.matching(tree)

    def answer(look: Look) -> Answer:
        if matches(look):
            return True
        try:
            return _answer(evaluate(look))
        except SelectorRuntimeError:
            return False  # the engine stopped earlier

    return answer


def _answer(value: Value) -> Answer:
    return None if value is None else value is True


class _Compiler:
    """Creates evaluators of nodes.

    Args:
        convert: whether comparisons convert strings.
    """

    def __init__(self, convert: bool) -> None:
        self.convert = convert

    # Conditions

    def matching(self, node: Node) -> Evaluator:
        """Return a condition evaluated by ``matches``: True or False."""
        node = plain(node)
        if isinstance(node, Between):
            parts = self.bounds(node)
        elif isinstance(node, (And, Or)):
            parts = [self.matching(term) for term in node.terms]
        else:
            evaluate = self.condition(node)
            return lambda look: evaluate(look) is True
        if isinstance(node, And) or (isinstance(node, Between) and not node.negated):
            return lambda look: all(part(look) is True for part in parts)
        return lambda look: any(part(look) is True for part in parts)

    def condition(self, node: Node) -> Evaluator:
        """Return a condition evaluated by ``evaluate``; a name stands for its Boolean.

        Raises:
            Refused: the node can't be a condition.
        """
        node = plain(node)
        match node:
            case Name():
                return _cast(self.value(node))
            case Not(operand=operand):
                return _negated(self.condition(operand))
            case And(terms=terms):
                return _joined([self.condition(term) for term in terms], decisive=False)
            case Or(terms=terms):
                return _joined([self.condition(term) for term in terms], decisive=True)
        evaluate = self.value(node)
        if not _is_condition(node):
            raise Refused("this is not a condition", node.at)
        return evaluate

    def value(self, node: Node) -> Evaluator:
        """Return any node evaluated by ``evaluate``."""
        node = plain(node)
        match node:
            case Literal(value=constant):
                return lambda look: constant
            case Name(name=name):
                return lambda look: look(name)
            case Sign(operand=operand):
                inner = self.value(operand)
                return lambda look: values.negate(inner(look))
            case Arithmetic():
                return self.arithmetic(node)
            case Compare():
                return self.comparison(node)
            case Between(negated=negated):
                return _joined(self.bounds(node), decisive=negated)
            case In():
                return self.membership(node)
            case Like():
                return self.likeness(node)
            case IsNull(subject=subject, negated=negated):
                inner = self.value(subject)
                return lambda look: (inner(look) is None) is not negated
            case Call(arguments=arguments):
                return functions.make(node, tuple(self.value(argument) for argument in arguments))
        return self.condition(node)

    def comparison(self, node: Compare) -> Evaluator:
        """Return the evaluator of ``= <> < <= > >=``."""
        if node.operator not in ("=", "<>"):
            return self.ordering(node.left, node.right, _TESTS[node.operator])
        _check_equality(node)
        left, right, convert = self.value(node.left), self.value(node.right), self.convert
        if node.operator == "=":
            return lambda look: values.equal(left(look), right(look), convert)
        return _negated(lambda look: values.equal(left(look), right(look), convert))

    def ordering(self, first: Node, second: Node, test: Callable[[int], bool]) -> Evaluator:
        """Return an ordering comparison; the right side is not evaluated if the left one is NULL."""
        for node in (first, second):
            inner = plain(node)
            number = isinstance(inner, Literal) and type(inner.value) not in (bool, str, type(None))
            if _is_condition(inner) or (isinstance(inner, Literal) and not number):
                raise Refused("only numbers and names can be ordered", node.at)
        left, right, convert = self.value(first), self.value(second), self.convert

        def evaluate(look: Look) -> Value:
            low = left(look)
            if type(low) is tuple:
                raise SelectorRuntimeError("a list can't be compared")
            high = None if low is None else right(look)
            if low is None or high is None:
                return None
            order = values.order(low, high, convert)
            return order is not None and test(order)

        return evaluate

    def bounds(self, node: Between) -> list[Evaluator]:
        """Return the two orderings of BETWEEN, joined by AND, or of NOT BETWEEN, joined by OR."""
        low, high = ("<", ">") if node.negated else (">=", "<=")
        return [
            self.ordering(node.subject, node.low, _TESTS[low]),
            self.ordering(node.subject, node.high, _TESTS[high]),
        ]

    def membership(self, node: In) -> Evaluator:
        """Return the evaluator of IN: NULL for anything but a string."""
        if not isinstance(plain(node.subject), Name):
            raise Refused("the left side of IN must be a name", node.subject.at)
        subject, members, negated = self.value(node.subject), frozenset(node.values), node.negated

        def evaluate(look: Look) -> Value:
            value = subject(look)
            return (value in members) is not negated if isinstance(value, str) else None

        return evaluate

    def likeness(self, node: Like) -> Evaluator:
        """Return the evaluator of LIKE: FALSE for anything but a string, so that NOT LIKE is TRUE."""
        escape = None if node.escape is None else str(node.escape.value)
        if node.escape is not None and escape is not None and ord(escape) > 0xFFFF:
            raise Refused("ESCAPE needs a string of exactly one character", node.escape.at)
        try:
            test = compiled(like.elements(str(node.pattern.value), escape))
        except ValueError as error:
            raise Refused(str(error), node.pattern.at) from None
        subject, negated = self.value(node.subject), node.negated

        def evaluate(look: Look) -> Value:
            value = subject(look)
            if value is None:
                return None
            return (isinstance(value, str) and test(value)) is not negated

        return evaluate

    def arithmetic(self, node: Arithmetic) -> Evaluator:
        """Return a chain evaluated from left to right; NULL as soon as one operand is NULL."""
        first = self.value(node.first)
        rest = [(values.OPERATORS[operator], self.value(operand)) for operator, operand in node.rest]

        def evaluate(look: Look) -> Value:
            result = first(look)
            for operator, operand in rest:
                if result is None:
                    return None
                other = operand(look)
                result = None if other is None else operator(result, other)
            return result

        return evaluate


def _is_condition(node: Node) -> bool:
    """Return whether the Java parser accepts the node as a Boolean expression."""
    match plain(node):
        case Compare() | Between() | In() | Like() | IsNull() | Not() | And() | Or() | Literal(value=bool() | None):
            return True
        case Call(function=function):
            return function in functions.CONDITIONS
    return False


def _check_equality(node: Compare) -> None:
    """Refuse operands of ``=`` and ``<>`` that the Java parser refuses."""
    left, right = plain(node.left), plain(node.right)
    for side in (left, right):
        if isinstance(side, Literal) and side.value is None:
            raise Refused("NULL can't be compared; write IS NULL", side.at)
    if isinstance(left, Literal) and isinstance(right, Literal):
        first, second = (isinstance(side.value, bool) for side in (left, right))
        if first and not second:
            raise Refused("a Boolean can't be compared with this", right.at)


def _cast(value: Evaluator) -> Evaluator:
    """Return a name as a condition: FALSE for anything but a Boolean."""

    def evaluate(look: Look) -> Value:
        found = value(look)
        return None if found is None else found is True

    return evaluate


def _negated(condition: Evaluator) -> Evaluator:
    def evaluate(look: Look) -> Value:
        value = condition(look)
        return None if value is None else value is not True

    return evaluate


def _joined(terms: list[Evaluator], decisive: bool) -> Evaluator:
    """Join terms by AND, which a term that is not TRUE decides, or by OR, which a TRUE one decides; else NULL wins."""

    def evaluate(look: Look) -> Value:
        unknown = False
        for term in terms:
            value = term(look)
            if value is None:
                unknown = True
            elif (value is True) is decisive:
                return decisive
        return None if unknown else not decisive

    return evaluate
