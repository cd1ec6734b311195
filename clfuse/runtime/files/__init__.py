"""Files that are kept between runs: where they lie, whether they may be believed."""
