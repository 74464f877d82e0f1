"""Values shared by all parts of the data source. Pure."""
