"""The files of a saved data set: Arrow IPC chunks, and the manifest that lists them."""
