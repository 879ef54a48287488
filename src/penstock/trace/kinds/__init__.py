"""What kind of value each step of a function works on, and what of that is surely not meant."""
