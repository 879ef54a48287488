"""Objects behind a URL: read by ranges in parallel and ahead, tried again, checked; written whole or not at all."""
