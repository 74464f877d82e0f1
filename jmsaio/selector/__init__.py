"""Message selectors: text, syntax tree, one compiled function."""

from jmsaio.selector.selector import Selector

__all__ = ["Selector"]
