"""Message selectors: text, syntax tree, one compiled function; the specification's dialect and the Java plugin's."""

from jmsaio.selector.selector import Selector, compile_selector

__all__ = ["Selector", "compile_selector"]
