"""The interface between JMS and a broker, and the transports that implement it."""
