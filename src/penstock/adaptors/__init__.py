"""What training frameworks take: tensors of torch, arrays of JAX, adapters of Keras, data sets of TensorFlow."""
