"""The rows of jmsaio itself, one module for each kind; every function takes a task and returns its metrics."""
