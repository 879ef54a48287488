"""Names and arguments that people know from TensorFlow, PyTorch and pandas, and what to write here in their place."""
