"""What the compiled kernels of all folders share, and their plain versions with them."""
