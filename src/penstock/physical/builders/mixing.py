"""How several data sets mixed into one run."""
