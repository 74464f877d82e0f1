"""A seeded generator of selectors and messages for the differential tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from jmsaio.model.values import Byte, Float, Long, Short, Value

Values = dict[str, Value]

#: Names by the type that most messages give them. A name of the last row is in no message.
NAMES = {
    "string": ("name", "region", "order", "android"),
    "int": ("count", "$a", "_b"),
    "long": ("total",),
    "byte": ("tiny",),
    "short": ("small",),
    "float": ("ratio",),
    "double": ("weight", "height"),
    "boolean": ("flag", "inside"),
    "missing": ("absent", "nothing"),
}
WORDS = (
    "EU", "US", "eu", "", "a_c", "a%c", "abc", "it's", "x\ny", "é", "10", "5", "true", "a.c", "ab", "日本", "5.0",
    "a,b,,",
)  # fmt: skip
INTS = (0, 1, 2, 3, 5, 7, 10, -1, -3, 100, 2147483647, -2147483648, 16777217)
LONGS = (0, 1, 5, 10, -3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 16777217)
DOUBLES = (0.0, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, -3.0, 0.1, 1e10, 3.25)
PATTERNS = (
    "%", "a%", "%c", "a_c", "_", "__", "%b%", "E%", "_U", "a\\_c", "a!%c", "%.c", "", "EU", "x%y", "%'%", "i[t]%",
    "%_%a%",
)  # fmt: skip
WHOLE = ("0", "1", "2", "3", "5", "7", "10", "100", "2147483647", "2147483648")
MARKED = ("1L", "5l", "11L", "0x5", "0XfF", "010", "017")
POINTED = ("5.", ".5", "1.5", "2.50", "1e1", "5E-1", "10.0", "0.1", "1.e2")
PUT_IN = ("(", ")", "'", " AND", " NOT ", "=", ";", "==", "#", " 1 ", "\\", ".")
#: Parts on which the specification and the engines differ, or on which one of them may stumble; `{x}` is a name,
#: `{y}` another, `{n}` a number and `{s}` a string.
ODDITIES = (
    "NOT {x} = {n}", "NOT {x}", "{x}", "{x} <> {s}", "{x} <> {y}", "{x} = {y}", "{x} > {y}", "{x} < {s}",
    "{x} / {n} > 1", "5 < tiny", "7 > small", "{x} NOT LIKE 'a%'", "{x} + {y} > 1", "-{x} < 1", "{x} / 0 = 1",
    "{x} % 2 = 1", "5", "NULL", "{x} = 1.5F", "{x} > 2D", "{x} = 0x1FL", "{x} = 99999999999999999999", "é = 1",
    "'a' = {s}", "JMSExpiration = {n}", "({x}) IN ('a')", "'a' IS NULL", "{x} + 1 IS NULL", "TRUE = {x}",
    "/* c */ {x} = 1", "{x} = {y} + 1", "{x} = 9.", "({x} = 1) = {y}", "{x} LIKE NULL", "{x} * {y} = 1.5",
    "{x} BETWEEN {y} AND 9", "{x} = NULL", "'a' + {x} = 'a1'", "{x} = 1 = TRUE", "{x} >= 9223372036854775807",
    "{x} > -9223372036854775808", "{x} IN ('a', 1)", "1AND {x} = 1", "{x} LIKE 'a' ESCAPE 'ab'",
    "{x} NOT BETWEEN {y} AND {n}", "{x} BETWEEN {n} AND 3AND {x} = 1", "- -{x} > {n}", "{x} = -0.0",
    "{x} NOT IN ({s})", "XPATH = 1", "xquery = {s}", "{x} > {y} * 1.5", "{n} - {x} > 1", "TRUE = {n}",
)  # fmt: skip


class Generator:
    """Selectors and messages from one seed.

    Args:
        seed: of the random numbers.
        odd: share of parts in which the engines are known to differ, 0 to 1.
    """

    oddities: tuple[str, ...] = ODDITIES

    def __init__(self, seed: int, odd: float = 0.03) -> None:
        self.random = random.Random(seed)
        self.odd = odd

    def chance(self, share: float) -> bool:
        """True in ``share`` of the cases."""
        return self.random.random() < share

    def one(self, *ways: str) -> str:
        """One of the texts."""
        return self.random.choice(ways)

    # Messages

    def message(self) -> Values:
        """Values for most of the names, most of them of the usual type."""
        values: Values = {
            "JMSPriority": self.random.randrange(10),
            "JMSTimestamp": Long(self.random.choice((0, 5, 1_700_000_000_000))),
            "JMSDeliveryMode": self.random.choice(("PERSISTENT", "NON_PERSISTENT")),
        }
        for header in ("JMSType", "JMSCorrelationID"):
            if self.chance(0.7):
                values[header] = self.random.choice(WORDS)
        for kind, names in NAMES.items():
            for name in names:
                if kind != "missing" and self.chance(0.72):
                    usual = not self.chance(self.odd)
                    values[name] = self.value(kind if usual else self.random.choice(tuple(NAMES)[:-1]))
        return values

    def value(self, kind: str) -> Value:
        """A value of one of the types."""
        pick = self.random.choice
        match kind:
            case "string":
                return pick(WORDS)
            case "int":
                return pick(INTS)
            case "long":
                return Long(pick(LONGS))
            case "byte":
                return Byte(pick((0, 1, 5, -3, 127, -128)))
            case "short":
                return Short(pick((0, 1, 5, -3, 32767, -32768)))
            case "float":
                return Float(pick((0.0, 1.5, 2.5, 5.0, 0.1, -3.0, 16777216.0, 3.4e38)))
            case "boolean":
                return self.chance(0.5)
        return pick((float("nan"), float("inf"), -0.0)) if self.chance(self.odd) else pick(DOUBLES)

    # Selectors

    def selector(self) -> str:
        """One selector; a few of them are no selectors at all."""
        text = self.condition(self.random.choice((0, 1, 1, 2, 2, 3)))
        return self.broken(text) if self.chance(0.06) else text

    def broken(self, text: str) -> str:
        """``text`` with a piece cut out, doubled or put in; most results are errors."""
        place = self.random.randrange(len(text))
        head, tail = text[:place], text[place:]
        cut = tail[self.random.randrange(1, 4) :]
        return head + self.one(cut, self.random.choice(PUT_IN) + tail, tail[:3] + tail)

    def space(self) -> str:
        """What stands between tokens."""
        return self.one(" ", " ", " ", "  ", "\t", "\n")

    def word(self, word: str) -> str:
        """A reserved word in any case of letters."""
        return self.one(word, word, word.lower(), word.title())

    def condition(self, depth: int) -> str:
        """TRUE, FALSE or UNKNOWN, of at most this depth."""
        if depth == 0:
            return self.predicate()
        inner = depth - 1
        way = self.random.randrange(10)
        if way < 7:
            word = self.word("AND" if way < 4 else "OR")
            return f"{self.condition(inner)}{self.space()}{word}{self.space()}{self.condition(inner)}"
        return f"({self.condition(inner)})" if way > 7 else f"{self.word('NOT')} ({self.condition(inner)})"

    def predicate(self) -> str:
        """One comparison or test."""
        if self.chance(self.odd):
            return self.oddity()
        ways: tuple[Callable[[], str], ...] = (
            self.strings, self.strings, self.numbers, self.numbers, self.numbers, self.numbers, self.between,
            self.membership, self.likeness, self.null, self.booleans,
        )  # fmt: skip
        return self.random.choice(ways)()

    def text(self) -> str:
        """A string literal."""
        return "'" + self.random.choice(WORDS).replace("'", "''") + "'"

    def name(self, *kinds: str) -> str:
        """A name of one of the kinds."""
        return self.random.choice(NAMES[self.random.choice(kinds)])

    def strings(self) -> str:
        """A string compared with a literal."""
        if self.chance(0.1):
            mode = self.one("'PERSISTENT'", "'NON_PERSISTENT'")
            return self.one(f"JMSDeliveryMode = {mode}", f"{mode}<>JMSDeliveryMode")
        name = self.one(self.name("string"), self.name("string", "missing"), "JMSType")
        return f"{name}{self.one('=', '<>', ' = ')}{self.text()}"

    def number(self) -> str:
        """A numeric literal, with or without signs."""
        digits = self.random.choice(self.random.choice((WHOLE, WHOLE, WHOLE, MARKED, POINTED)))
        return self.one("", "", "", "-", "- -", "+") + digits

    def sum(self, depth: int = 1) -> str:
        """A numeric operand; a name in it stands at the left, where the engines agree on NULL."""
        name = self.one(self.name("int"), self.name("int", "long", "double", "byte", "short"), "JMSPriority")
        if depth == 0 or self.chance(0.6):
            return name
        operator = self.one("+", "-", "*", " + ", " - ", " * ")
        grouped = f"({self.sum(0)}{operator}{self.number()})"
        return self.one(f"{name}{operator}{self.number()}", grouped, f"-{self.name('int', 'double')}")

    def numbers(self) -> str:
        """Numbers compared."""
        operator = self.one("=", "<>", "<", "<=", ">", ">=", " > ", " < ")
        if self.chance(0.1):
            return f"{self.name('float', 'missing', 'long')}{operator}{self.number()}"
        if self.chance(0.1) and operator.strip() not in ("=", "<>"):
            return f"{self.number()}{operator}{self.name('int', 'double')}"
        return f"{self.sum()}{operator}{self.number()}"

    def between(self) -> str:
        """BETWEEN, now and then with a bound that is missing."""
        bounds = [self.number(), self.number()]
        if self.chance(0.25):
            bounds[self.random.randrange(2)] = self.name("int", "missing")
        word = self.word(self.one("BETWEEN", "NOT BETWEEN"))
        return f"{self.sum()} {word} {bounds[0]} {self.word('AND')} {bounds[1]}"

    def membership(self) -> str:
        """IN."""
        name = self.one(self.name("string", "missing"), "JMSType", "JMSCorrelationID")
        words = ",".join(self.text() for _ in range(self.random.randrange(1, 7)))
        return f"{name} {self.one('IN', 'NOT IN', 'in')}{self.one('', ' ')}({words})"

    def likeness(self) -> str:
        """LIKE, some with ESCAPE."""
        pattern = self.random.choice(PATTERNS).replace("'", "''")
        escape = self.one("", "", " ESCAPE '\\'", " escape '!'")
        return f"{self.name('string', 'string', 'missing')} {self.one('LIKE', 'NOT LIKE', 'like')} '{pattern}'{escape}"

    def null(self) -> str:
        """IS NULL."""
        name = self.one(self.name(*NAMES), "JMSType", "JMSCorrelationID")
        return f"{name} {self.word('IS')} {self.one('NULL', 'NOT NULL', 'not null')}"

    def booleans(self) -> str:
        """Booleans as conditions and compared."""
        name = self.name("boolean", "boolean", "missing")
        return self.one(name, f"{name} = {self.word('TRUE')}", f"{name} <> FALSE", f"({name})", f"NOT {name}", "TRUE")

    def oddity(self) -> str:
        """One of the oddities."""
        names = {"x": self.name(*NAMES), "y": self.name(*NAMES)}
        return self.random.choice(self.oddities).format(n=self.number(), s=self.text(), **names)


#: Regular expressions that the Starlight dialect takes, and replacements.
REGEXES = (
    "a", "^a", "b$", "[a-c]+", "(a|b)c?", "\\\\d{1,3}", "^(?:E|U).$", "[^a-z]", "a.c", "\\\\.", "x\\\\sy", "(a)(b)?",
    "_+?", ",", "(,)(b)", "\\\\w{2,}", "[\\\\w.]+$", "日",
)  # fmt: skip
REPLACEMENTS = ("", "-", "$1", "<$0>", "\\\\$", "é$1!", "a")
STARLIGHT_ODDITIES = (
    "REGEX('{r}', {x})", "NOT REGEX('{r}', {s})", "REGEX('{r}', ({x} + {y}))", "INLIST(MAKELIST({x}, 5, {s}), {y})",
    "INLIST(SPLIT({x}, '{c}'), 'a')", "INLIST(SPLIT({x}, ',', {n}), 'b')",
    "SPLIT({x}, ',', -1) = MAKELIST('a', 'b', '', '')", "REPLACE({x}, '{c}', '{p}') = {s}",
    "REPLACE({x}, '{c}', {y}) LIKE 'a%'", "(REPLACE({x}, '{c}', '{p}') + 'c') = 'abcc'",
    "'' + MAKELIST({x}, {y}) = '[5, 5]'", "MAKELIST({x}) > 1", "regex('a', {x})", "REGEX('a')", "SPLIT({x}, ',')",
    "{x} + {y} = {s}", "'' + {x} = {s}", "{x} + 1.5 = '51.5'", "'' + {x} LIKE '%E%'", "{x} % {n} = 1",
    "{x} % {y} > {n}", "-- note\n{x} = 1", "{x} /* a * b */ = /***/ 1", "{x} = 1 -- end", "{x} = NULL",
    "NULL IS NULL", "NOT NULL", "TRUE = FALSE", "{x} = {y} = TRUE", "{x} > 1 IS NULL", "{x} > 1 LIKE 'a'",
    "{x} < 5 = TRUE", "NOT {x} = {n}", "NOT {x} <> {y}", "NOT {x} IS NULL", "- {x} = {n}", "-'a' > 1",
    "+({x}) IN ('a')", "+{x} LIKE 'a%'", "{x} = 18446744073709551621", "{x} = -9223372036854775808",
    "-(9223372036854775808) < {x}", "{x} + 99999999999999999999 = {y}", "0x7fffffffffffffff > {x}",
    "0xffffffffffffffff > {x}", "09 = {x}", "{x} = 1L", "{x} = 0L", "{x} LIKE 'a€_c' ESCAPE '€'",
    "{x} LIKE 'a€%' ESCAPE '€'", "{x} LIKE 'ab\t_' ESCAPE '\t'", "{x} LIKE 'ab\t\tc' ESCAPE '\t'", "{x} NOT LIKE '%'",
    "{n} LIKE '5'", "JMSXDeliveryCount = 1", "JMSRedelivered", "JMSXGroupID = ''", "JMSXGroupSeq = 1",
    "JMSExpiration = 0", "JMSMessageID IS NULL", "JMSReplyTo IS NULL", "JMSXProducerTXID IS NULL",
    "JMSActiveMQBrokerPath = 'null'", "JMSXUserID IS NULL", "JMSActiveMQBrokerInTime = 0",
    "NOT ({x} BETWEEN {y} AND {n})", "{x} BETWEEN -{y} AND 5", "{x} > {y} AND {y} > {x}", "{x} IS NULL IS NULL",
    "(1 = 1) = {x}", "({x} = {y}) <> ({y} = {n})", "{x} NOT BETWEEN -{y} AND {y}", "{x} = 1AND{x} = 1",
    "{x} = 1 OR -{y} = 1", "{x} AND -{y} = 1", "JMSPriority + {x} > 3", "JMSTimestamp = {n}", "JMSDeliveryMode = 1",
    "JMSType > {x}", "{x} >= {y}", "{x} < {y}",
)  # fmt: skip


class StarlightGenerator(Generator):
    """As `Generator`, with what only the engines of the ActiveMQ family have."""

    oddities = ODDITIES + 2 * STARLIGHT_ODDITIES

    def oddity(self) -> str:
        """One of the oddities."""
        pick = self.random.choice
        names = {"x": self.name(*NAMES), "y": self.name(*NAMES)}
        consuming = tuple(regex for regex in REGEXES if regex not in ("^a", "b$"))
        regex = pick(consuming)
        groups = "(" in regex.replace("(?:", "")
        replacement = pick([text for text in REPLACEMENTS if groups or "$1" not in text])
        parts = {"r": pick(REGEXES), "c": regex, "p": replacement}
        parts = {name: part.replace("\\\\", "\\") for name, part in parts.items()}
        return pick(self.oddities).replace("{1,3}", "{{1,3}}").format(n=self.number(), s=self.text(), **names, **parts)

    def selector(self) -> str:
        """One selector; some convert strings."""
        prefix = "convert_string_expressions:" if self.chance(0.15) else ""
        return prefix + super().selector()


def pairs(generator: Generator, selectors: int, each: int) -> Iterator[tuple[str, Values]]:
    """``each`` messages for each of ``selectors`` selectors."""
    for _ in range(selectors):
        text = generator.selector()
        for _ in range(each):
            yield text, generator.message()
