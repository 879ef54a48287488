"""Shards of MosaicML Streaming and LitData: files of their own writers, and small ones written by hand."""

import hashlib
import json
import tarfile
from pathlib import Path

import numpy as np

# written by mosaicml-streaming 0.13.0 and litdata 0.2.76
WRITTEN = Path(__file__).parents[1] / "data" / "shards.tar.gz"


def unpack_written(folder):
    """Return the folder with the files of the libraries' own writers."""
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(folder, filter="data")
    return folder


def shard_of(samples, header=b""):
    """Return a shard in the layout of both formats."""
    ends = np.cumsum([4 * (len(samples) + 2) + len(header), *map(len, samples)])
    return np.array([len(samples), *ends], np.uint32).tobytes() + header + b"".join(samples)


def sample_of(values, free):
    sizes = np.array([len(value) for value, size in zip(values, free, strict=True) if size is None], np.uint32)
    return sizes.tobytes() + b"".join(values)


def write_mds(folder, columns, rows, per_shard=25, pack=None, **changes):
    """Write rows of encoded values. `columns` maps a name to (encoding, size)."""
    folder.mkdir(exist_ok=True)
    encodings, sizes = ([column[part] for column in columns.values()] for part in (0, 1))
    shards = []
    for number, start in enumerate(range(0, len(rows), per_shard)):
        part = rows[start : start + per_shard]
        raw = shard_of([sample_of(row, sizes) for row in part], b"{}")
        name = f"shard.{number:05d}.mds"
        described = {"basename": name, "bytes": len(raw), "hashes": {"sha1": hashlib.sha1(raw).hexdigest()}}
        shard = {"format": "mds", "version": 2, "samples": len(part), "compression": None, "zip_data": None}
        shard |= {"column_names": list(columns), "column_encodings": encodings, "column_sizes": sizes}
        shard |= {"raw_data": described, "hashes": ["sha1"], "size_limit": None}
        content = raw
        if pack is not None:
            kind, compress = pack
            content = compress(raw)
            packed = {"basename": f"{name}.{kind}", "bytes": len(content)}
            packed["hashes"] = {"sha1": hashlib.sha1(content).hexdigest()}
            shard |= {"compression": kind, "zip_data": packed}
            name = packed["basename"]
        (folder / name).write_bytes(content)
        shards.append(shard | changes)
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return folder


def spec_of(nest):
    """Return the treespec of a nest, as torch writes it."""
    if isinstance(nest, dict):
        parts = [spec_of(part) for part in nest.values()]
        return {"type": "builtins.dict", "context": json.dumps(list(nest)), "children_spec": parts}
    if isinstance(nest, (tuple, list)):
        kind = f"builtins.{type(nest).__name__}"
        return {"type": kind, "context": "null", "children_spec": [spec_of(part) for part in nest]}
    return {"type": None, "context": None, "children_spec": []}


def write_litdata(folder, nest, formats, rows, per_chunk=25, **config):
    """Write rows of serialised leaves."""
    folder.mkdir(exist_ok=True)
    chunks = []
    for number, start in enumerate(range(0, len(rows), per_chunk)):
        part = rows[start : start + per_chunk]
        content = shard_of([sample_of(row, [None] * len(row)) for row in part])
        name = f"chunk-0-{number}.bin"
        (folder / name).write_bytes(content)
        chunks.append({"filename": name, "chunk_size": len(part), "chunk_bytes": len(content), "dim": None})
    spec = json.dumps([1, spec_of(nest)])
    found = {"data_format": formats, "data_spec": spec, "compression": None, "item_loader": "PyTreeLoader"}
    (folder / "index.json").write_text(json.dumps({"chunks": chunks, "config": found | config}))
    return folder
