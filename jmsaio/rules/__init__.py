"""What JMS decides, without input or output: acknowledgement, life cycles, routing, redelivery."""
