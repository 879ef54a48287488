"""A small transformer in torch that learns to continue sentences. Each row contains several sentences.

Sentences differ in length. In a padded batch, a large share of the step goes into padding; packed rows are nearly full.
A mask separates the sentences of a row.

Run it with `python examples/train/torch_text_packed.py --length 64`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import made_up_data
import numpy as np
import torch
from torch import nn

import penstock as ps

END = 0  # the token after the last word of a sentence, and the padding of rows


def vocabulary(path):
    return {word: number for number, word in enumerate(sorted(set(Path(path).read_text().split())), 1)}


def pipeline(path, words, length, batch_size):
    def tokens(line):
        numbers = np.array([words[word] for word in line.decode().split()] + [END], np.int64)
        return {"inputs": numbers[:-1], "targets": numbers[1:]}  # the target of each word is the next word

    def with_mask(batch):
        ids = batch["inputs_segment_ids"]  # 1, 2, 3 ... for the sentences of a row, 0 for padding
        same = ids[:, :, None] == ids[:, None, :]
        return {
            "inputs": batch["inputs"],
            "positions": batch["inputs_positions"],
            "targets": batch["targets"],
            "may_attend": same & np.tri(length, dtype=bool),  # the words before it, in its own sentence
        }

    return (
        ps.TextLineDataset(path)
        .shuffle(10_000, seed=1)  # before pack: sentences get other neighbours in each epoch
        .map(tokens)
        .pack(length, padding_values={"inputs": END, "targets": -100})  # cross_entropy leaves out -100
        .batch(batch_size, drop_remainder=True)
        .map(with_mask, num_parallel_calls=ps.AUTOTUNE)
        .prefetch(ps.AUTOTUNE)
    )


class Transformer(nn.Module):
    def __init__(self, words, length, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(width, words)

    def forward(self, inputs, positions, may_attend):
        x = self.words(inputs) + self.places(positions)
        hidden = ~may_attend.repeat_interleave(self.heads, dim=0)  # torch's masks mark the hidden words
        return self.out(self.body(x, mask=hidden))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4000, help="number of sentences")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--length", type=int, default=32, help="tokens in a row")
    parser.add_argument("--batch-size", type=int, default=16)
    arguments = parser.parse_args()

    # The model and the preparation share the cores; on a GPU machine they do not.
    torch.set_num_threads(max(1, torch.get_num_threads() // 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sentences.txt")
        made_up_data.sentences(path, arguments.count)
        words = vocabulary(path)
        loader = pipeline(path, words, arguments.length, arguments.batch_size).to_torch()

        torch.manual_seed(0)
        model = Transformer(len(words) + 1, arguments.length)
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for epoch in range(arguments.epochs):
            right = known = 0
            for batch in loader:
                scores = model(batch["inputs"], batch["positions"], batch["may_attend"])
                loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch["targets"].flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                real = batch["targets"] != -100
                first = batch["positions"] < 2  # the first words of a sentence cannot be predicted
                right += (scores.argmax(-1) == batch["targets"])[real & ~first].sum().item()
                known += (real & ~first).sum().item()
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}, right in {right / known:.0%} of the words")
        shares = [(batch["targets"] != -100).float().mean() for batch in loader]
        print(f"{1 - torch.stack(shares).mean().item():.1%} of the rows is padding")


if __name__ == "__main__":
    main()
