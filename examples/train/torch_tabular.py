"""Rows of a table, from TFRecord files and from Parquet: the same training, the same result.

Run it with `python examples/train/torch_tabular.py --count 100000`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import made_up_data
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch
from torch import nn

import penstock as ps

CONTRACTS = np.array([b"monthly", b"yearly", b"two years"], object)
FEATURES = {
    "months": ps.io.FixedLenFeature((), np.int64),
    "bill": ps.io.FixedLenFeature((), np.float32),
    "contract": ps.io.FixedLenFeature((), bytes),
    "left": ps.io.FixedLenFeature((), np.int64),
}


def write(columns, folder):
    """Write the table in both formats."""
    pa.parquet.write_table(pa.table(columns), Path(folder, "customers.parquet"), row_group_size=1000)
    with ps.io.TFRecordWriter(Path(folder, "customers.tfrecord")) as writer:
        for values in zip(*columns.values(), strict=True):
            writer.write(ps.io.encode_example(dict(zip(columns, values, strict=True))))


def from_tfrecord(folder, batch_size):
    """Parse a batch of records at a time: with small features, parsing is the main cost."""
    records = ps.TFRecordDataset(Path(folder, "customers.tfrecord"))
    return records.shuffle(1000, seed=1).batch(batch_size).map(lambda batch: ps.io.parse_example(batch, FEATURES))


def from_parquet(folder, batch_size):
    """Read only the named columns."""
    rows = ps.ParquetDataset(Path(folder, "customers.parquet"), columns=list(FEATURES))
    return rows.shuffle(1000, seed=1).batch(batch_size)


def prepare(batch):
    """Convert a batch of columns to a matrix and labels: numbers around 0, and a column for each contract."""
    months, bill = (batch["months"] - 36) / 20, (batch["bill"] - 60) / 20
    contract = batch["contract"][:, None] == CONTRACTS
    x = np.concatenate([months[:, None], bill[:, None], contract], axis=1)
    return x.astype(np.float32), batch["left"].astype(np.float32)


def train(ds, epochs):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        right = 0.0
        for x, left in ds.map(prepare).prefetch(ps.AUTOTUNE).to_torch():
            scores = model(x)[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(scores, left)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += ((scores > 0) == (left > 0)).sum().item()
    return loss.item(), right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="number of rows")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=100)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        write(made_up_data.table(arguments.count), folder)
        for name, source in (("TFRecord", from_tfrecord), ("Parquet", from_parquet)):
            loss, right = train(source(folder, arguments.batch_size), arguments.epochs)
            print(f"{name:<9} loss {loss:.6f}, right for {right / arguments.count:.1%} of the rows")


if __name__ == "__main__":
    main()
