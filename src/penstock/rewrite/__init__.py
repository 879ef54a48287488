"""From a plan to an equal plan that runs better."""
