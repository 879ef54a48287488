"""penstock and TensorFlow on the same input: one module per subject, each a list of checks."""
