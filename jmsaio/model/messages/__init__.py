"""The six kinds of JMS messages: headers, properties, bodies."""
