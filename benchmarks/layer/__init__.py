"""The JMS layer alone: rows over a transport that costs next to nothing, beside a bare loop."""
