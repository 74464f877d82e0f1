"""Our own names on the wire, beside Starlight's (``model.wire``)."""

from __future__ import annotations

from typing import Final

#: Marks an object message of ours whose Java String holds JSON; Java reads a String, Python the value.
OBJECT_JSON: Final = "jmsaio_object"
