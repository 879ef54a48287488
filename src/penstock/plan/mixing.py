"""Steps: several data sets mixed into one."""
