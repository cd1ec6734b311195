"""Rules of advice, by what they look at, and what they read in the text of a program."""
