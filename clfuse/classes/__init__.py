"""The public array classes: operators, methods, iteration, printing."""
