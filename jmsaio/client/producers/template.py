"""The properties and headers that a JMSProducer sets on each message it sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import attrs

from jmsaio.errors import MessageNotWriteableError
from jmsaio.model.arguments import check_mapping
from jmsaio.model.destinations import Destination
from jmsaio.model.headers import OF_APPLICATION
from jmsaio.model.messages.message import Message
from jmsaio.model.messages.properties import Property, PropertyView


@attrs.define(eq=False)
class MessageTemplate:
    """The message part of a JMSProducer; setters return the producer.

    Property getters convert and raise as those of a message.
    """

    _template: Message = attrs.field(factory=Message, init=False)

    def set_property(self, name: str, value: Property) -> Self:
        """Set a property, which overrides the message's property of that name. Raises as ``set_object_property``."""
        self._template.set_object_property(name, value)
        return self

    def set_properties(self, properties: Mapping[str, Property]) -> Self:
        """Set several properties."""
        check_mapping(properties, "properties")
        for name, value in properties.items():
            self._template.set_object_property(name, value)
        return self

    def clear_properties(self) -> Self:
        """Remove the properties."""
        self._template.clear_properties()
        return self

    @property
    def properties(self) -> PropertyView:
        """The properties, a mutable mapping of Python values; ``get_int_property`` and the like convert."""
        return self._template.properties

    def get_properties(self) -> PropertyView:
        """Return ``properties``."""
        return self.properties

    def property_exists(self, name: str) -> bool:
        """See ``Message.property_exists``."""
        return self._template.property_exists(name)

    def get_property_names(self) -> list[str]:
        """See ``Message.get_property_names``."""
        return self._template.get_property_names()

    def get_object_property(self, name: str) -> Property:
        """See ``Message.get_object_property``."""
        return self._template.get_object_property(name)

    def get_boolean_property(self, name: str) -> bool:
        """See ``Message.get_boolean_property``."""
        return self._template.get_boolean_property(name)

    def get_byte_property(self, name: str) -> int:
        """See ``Message.get_byte_property``."""
        return self._template.get_byte_property(name)

    def get_short_property(self, name: str) -> int:
        """See ``Message.get_short_property``."""
        return self._template.get_short_property(name)

    def get_int_property(self, name: str) -> int:
        """See ``Message.get_int_property``."""
        return self._template.get_int_property(name)

    def get_long_property(self, name: str) -> int:
        """See ``Message.get_long_property``."""
        return self._template.get_long_property(name)

    def get_float_property(self, name: str) -> float:
        """See ``Message.get_float_property``."""
        return self._template.get_float_property(name)

    def get_double_property(self, name: str) -> float:
        """See ``Message.get_double_property``."""
        return self._template.get_double_property(name)

    def get_string_property(self, name: str) -> str | None:
        """See ``Message.get_string_property``."""
        return self._template.get_string_property(name)

    @property
    def jms_correlation_id(self) -> str | None:
        """JMSCorrelationID of each message; bytes are decoded as in a message."""
        return self._template.jms_correlation_id

    def get_jms_correlation_id(self) -> str | None:
        """Return ``jms_correlation_id``."""
        return self.jms_correlation_id

    def set_jms_correlation_id(self, value: str | None) -> Self:
        """Set JMSCorrelationID of messages that have none. Raises MessageFormatError unless str or None."""
        self._template.jms_correlation_id = value
        return self

    @property
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """JMSCorrelationID of each message; a text as UTF-8."""
        return self._template.jms_correlation_id_as_bytes

    def get_jms_correlation_id_as_bytes(self) -> bytes | None:
        """Return ``jms_correlation_id_as_bytes``."""
        return self.jms_correlation_id_as_bytes

    def set_jms_correlation_id_as_bytes(self, value: bytes | None) -> Self:
        """Set JMSCorrelationID of messages that have none, as bytes; of the two setters the last call counts."""
        self._template.jms_correlation_id_as_bytes = value
        return self

    @property
    def jms_reply_to(self) -> Destination | None:
        """JMSReplyTo of each message."""
        return self._template.jms_reply_to

    def get_jms_reply_to(self) -> Destination | None:
        """Return ``jms_reply_to``."""
        return self.jms_reply_to

    def set_jms_reply_to(self, value: Destination | None) -> Self:
        """Set JMSReplyTo of messages that have none. Raises InvalidDestinationError unless a destination or None."""
        self._template.jms_reply_to = value
        return self

    @property
    def jms_type(self) -> str | None:
        """JMSType of each message."""
        return self._template.jms_type

    def get_jms_type(self) -> str | None:
        """Return ``jms_type``."""
        return self.jms_type

    def set_jms_type(self, value: str | None) -> Self:
        """Set JMSType of messages that have none. Raises MessageFormatError unless str or None."""
        self._template.jms_type = value
        return self

    def _apply(self, message: Message) -> None:
        """Set the properties and headers on a message."""
        template = self._template
        if template._properties:
            if message._read_only_properties:
                raise MessageNotWriteableError(
                    "a received message can't be changed by the producer's properties; clear_properties first"
                )
            message._put_properties(template._properties)
        head = template._head
        if head is None:
            return
        own = message._headers()
        for header in OF_APPLICATION:
            if getattr(own, header.field) is None:
                setattr(own, header.field, getattr(head, header.field))
