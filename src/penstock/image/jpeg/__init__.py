"""JPEG: decoding by libjpeg-turbo or, for a Block, by kernels; encoding; JPEG noise as an augmentation."""
