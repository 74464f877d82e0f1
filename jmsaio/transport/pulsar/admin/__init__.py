"""The broker's REST interface: the calls that jmsaio needs, as ``jmsaio.transport.base.Admin``."""

from jmsaio.transport.pulsar.admin.rest import RestAdmin

__all__ = ["RestAdmin"]
