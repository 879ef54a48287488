"""Checks of penstock and TensorFlow on the same input: one module per subject, each with a list of checks."""
