"""Message selectors: text, syntax tree, one compiled function; the specification's dialect and the Java plugin's."""

from jmsaio.selector.selector import Selector

__all__ = ["Selector"]
