"""``jmsaio spark``: jobs on stored messages with PySpark; one module per group of commands."""
