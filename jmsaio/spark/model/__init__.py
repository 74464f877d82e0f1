"""Values that every part of the data source shares. Pure."""
