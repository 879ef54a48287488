"""Inputs of training frameworks: torch tensors, JAX arrays, Keras adapters, TensorFlow data sets."""
