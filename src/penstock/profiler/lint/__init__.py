"""What would make a pipeline better, found by looking at its plan."""
