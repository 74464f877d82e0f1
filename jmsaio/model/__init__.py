"""Values: destinations, headers, properties, bodies, wire records. attrs and the standard library only."""
