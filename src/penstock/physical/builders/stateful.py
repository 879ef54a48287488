"""How steps that carry a state from element to element run."""
