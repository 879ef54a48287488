"""Downloads: fetched in parallel, gone on with, verified, cached by checksum; archives read and unpacked with care."""
