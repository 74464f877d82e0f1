"""The JMS objects: one module for each noun of the specification, and the packages they are built on."""
