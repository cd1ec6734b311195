"""Commands: run, demo, bench, and the checks of doctor."""
