"""The files of a saved data set: Arrow IPC chunks and the manifest that makes a whole of them."""
