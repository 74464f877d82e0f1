"""The JMS objects: one module per noun of the specification, and the packages that they use."""
