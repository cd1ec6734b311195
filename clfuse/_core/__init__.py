"""The compiled part: common cases of recording, evaluation and small arrays in C."""
