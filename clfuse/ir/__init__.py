"""The recorded program: immutable nodes, built by `api`, read by `plan`."""
