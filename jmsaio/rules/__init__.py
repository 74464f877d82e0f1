"""The decisions of JMS, without input or output: acknowledgement, life cycles, routing, redelivery."""
