"""Downloads: fetched in parallel, resumed, verified, cached by checksum. Archives: read and unpacked safely."""
