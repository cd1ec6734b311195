"""The language's front end: syntax, types, and the typed tree."""
