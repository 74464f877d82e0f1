"""``jmsaio spark``: jobs on the messages of destinations, through PySpark; one module for each group of commands."""
