"""Draw the figure of docs/contributing/architecture.md: the packages, and the objects that pass between them.

`python tools/figures/architecture.py PNG` also writes the figure as a PNG.
"""

from __future__ import annotations

import sys
from pathlib import Path

from filled import ROOT
from timeline import titled

from penstock.profiler.views.picture import Picture

LABEL = "Diagram: a data set becomes a plan, rewritten and lowered to stages, which an iteration runs with workers"
HEIGHT = 62


def box(picture: Picture, x: float, y: float, width: float, title: str, folder: str, text: str = "") -> None:
    picture.rectangle(x, y, width, HEIGHT if text else HEIGHT - 16, "idle", outline="soft")
    picture.text(x + width / 2, y + 19, title, size=13, anchor="middle", bold=True)
    picture.text(x + width / 2, y + 36, folder, size=12, anchor="middle", colour="step")
    picture.text(x + width / 2, y + 53, text, size=11, anchor="middle", colour="soft")


def arrow(picture: Picture, start: tuple[float, float], end: tuple[float, float], text: str = "") -> None:
    """Draw a horizontal or vertical arrow, with a text above or beside its middle."""
    (left, top), (right, bottom) = start, end
    picture.line([start, end], "text", width=1.4)
    if top == bottom:
        back = 6 if right > left else -6
        picture.line([(right - back, top - 4), end, (right - back, top + 4)], "text", width=1.4)
        picture.text((left + right) / 2, top - 6, text, size=11, anchor="middle")
    else:
        back = 6 if bottom > top else -6
        picture.line([(left - 4, bottom - back), end, (left + 4, bottom - back)], "text", width=1.4)
        picture.text(left + 7, (top + bottom) / 2 + 4, text, size=11)


def figure() -> Picture:
    picture = Picture(940, 518)
    picture.text(20, 24, "From method calls to stages", size=14, bold=True)
    steps = {
        20: ("Dataset", "dataset/", "one method: one node"),
        260: ("Plan", "plan/", "frozen nodes"),
        500: ("Rules", "rewrite/", "equal, faster plan"),
        740: ("Stages", "physical/", "one stage for each step"),
    }
    for x, words in steps.items():
        box(picture, x, 40, 180, *words)
    for x, text in ((200, "_then"), (440, "optimise"), (680, "lower")):
        arrow(picture, (x, 71), (x + 58, 71), text)

    picture.rectangle(20, 136, 900, 196, "ground", outline="rule")
    picture.text(32, 157, "Each iteration: Run and its workers, runtime/", size=14, bold=True)
    arrow(picture, (830, 102), (830, 134))
    box(picture, 40, 178, 150, "Source", "sources/  io/", "cuts Blocks out of files")
    box(picture, 290, 178, 170, "Segment", "segment.py  work.py", "workers run transforms")
    box(picture, 560, 178, 140, "Results", "results.py", "wait, in order")
    box(picture, 770, 178, 136, "Iterator", "run.py", "yields elements")
    arrow(picture, (190, 209), (288, 209), "Blocks")
    arrow(picture, (460, 209), (558, 209), "Blocks")
    arrow(picture, (700, 209), (768, 209), "Blocks")
    box(picture, 40, 268, 150, "Entry", "store/")
    arrow(picture, (115, 266), (115, 242), "second epoch")
    box(picture, 560, 268, 346, "Tuner and budget", "autotune/  memory/")
    arrow(picture, (558, 291), (377, 291), "workers, executor, sizes")
    picture.line([(377, 291), (377, 242)], "text", width=1.4)
    picture.line([(373, 248), (377, 242), (381, 248)], "text", width=1.4)
    arrow(picture, (290, 291), (192, 291), "first epoch")
    picture.line([(290, 291), (290, 258), (310, 258), (310, 242)], "text", width=1.4)

    picture.text(20, 362, "The function of a step", size=14, bold=True)
    box(picture, 20, 378, 180, "Facts", "functions/", "side effects, randomness")
    box(picture, 260, 378, 180, "Graph", "trace/", "the function on tracers")
    box(picture, 500, 378, 180, "Kernels", "image/  io/  native/", "a whole Block, no GIL")
    box(picture, 740, 378, 180, "Calls per element", "runtime/processes/", "a thread or a process")
    arrow(picture, (200, 409), (258, 409))
    arrow(picture, (440, 409), (498, 409))
    arrow(picture, (830, 350), (830, 376), "no graph")
    picture.line([(420, 332), (420, 350), (830, 350)], "text", width=1.4)
    arrow(picture, (400, 332), (400, 376))
    arrow(picture, (830, 458), (830, 442))
    picture.line([(110, 440), (110, 458), (830, 458)], "text", width=1.4)
    picture.text(470, 453, "may the function move to another process?", size=11, anchor="middle")

    notes = (
        "adaptors/ converts elements for torch, JAX, Keras and TensorFlow.  delivery/ runs parts of a plan in workers.",
        "profiler/ measures and explains.  catalog/, formats/, torch/, compat/ and cli/ are built on dataset/.",
    )
    for row, text in enumerate(notes):
        picture.text(20, 486 + 20 * row, text, size=12, colour="soft")
    return picture


if __name__ == "__main__":
    drawn = figure()
    (ROOT / "docs" / "figures" / "architecture.svg").write_text(titled(drawn, LABEL), encoding="utf-8")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(drawn.png())
