"""The seam between JMS and a broker, and the transports behind it."""
