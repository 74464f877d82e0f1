"""JMS destinations as Spark tables and streams, through PySpark's data source API.

Importing this package loads neither pyspark nor pyarrow.
"""
