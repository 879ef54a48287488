"""torchvision's data sets and transforms, run by kernels: the same random numbers and the same bits."""
