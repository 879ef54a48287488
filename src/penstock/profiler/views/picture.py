"""Picture: rectangles, lines, text and images, written as SVG (light and dark) and as PNG."""

from __future__ import annotations

import base64
import os
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from penstock.errors import writing_to
from penstock.io.writing import local, writing
from penstock.opencv import opencv

Colour = str | tuple[int, int, int]  # a name of PALETTE, which differs on a dark page; or RGB, the same everywhere
Anchor = Literal["start", "middle", "end"]

# Colours by name: on a light and on a dark ground. The report page and all figures use them.
PALETTE = {
    "ground": ("#ffffff", "#0f172a"),
    "text": ("#1e293b", "#e2e8f0"),
    "soft": ("#64748b", "#94a3b8"),
    "rule": ("#e2e8f0", "#334155"),
    "idle": ("#f1f5f9", "#1e293b"),
    "step": ("#2563eb", "#60a5fa"),
    "wait": ("#dc2626", "#f87171"),
    "good": ("#15803d", "#4ade80"),
    "mid": ("#a16207", "#facc15"),
    "bad": ("#b91c1c", "#f87171"),
    "h0": ("#f59e0b", "#f59e0b"),
    "h1": ("#10b981", "#10b981"),
    "h2": ("#8b5cf6", "#a78bfa"),
    "h3": ("#06b6d4", "#06b6d4"),
    "h4": ("#ec4899", "#f472b6"),
    "h5": ("#84cc16", "#84cc16"),
    "h6": ("#c2410c", "#fb923c"),
    "h7": ("#94a3b8", "#64748b"),
}
# for things without their own colour; the last one is for all others
HUES = tuple(name for name in PALETTE if name[0] == "h")
DARK = "@media (prefers-color-scheme:dark)"

# PNGs are drawn so many times larger and then scaled down, which smooths the letters.
_FINER = 3
_SPELLED = str.maketrans(
    {"…": "...", "–": "-", "·": "-", "→": "->", "•": "*", "µ": "u"}
)  # replacements for letters that PNGs cannot show


def style() -> str:
    """Return a style sheet with the classes of all named colours: `f-NAME` fills, `s-NAME` draws lines.

    >>> ".f-wait{fill:#dc2626}" in style()
    True
    """
    parts = [_rules(0), f"{DARK}{{{_rules(1)}}}"]
    return "".join(parts)


def _rules(ground: int) -> str:
    return "".join(
        f".f-{name}{{fill:{both[ground]}}}.s-{name}{{stroke:{both[ground]}}}" for name, both in PALETTE.items()
    )


@dataclass(frozen=True)
class Rectangle:
    """A filled rectangle. `title` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour
    _: KW_ONLY
    opacity: float = 1.0
    outline: Colour | None = None
    title: str = ""

    def svg(self) -> str:
        paint = _paint("f", self.colour, self.outline)
        if self.opacity < 1:
            paint += f' fill-opacity="{self.opacity:.3g}"'
        body = f'<rect x="{self.x:.6g}" y="{self.y:.6g}" width="{self.width:.6g}" height="{self.height:.6g}" {paint}'
        return f"{body}><title>{escape(self.title)}</title></rect>" if self.title else f"{body}/>"

    def draw(self, canvas: Any) -> None:
        left, right = round(self.x * _FINER), round((self.x + self.width) * _FINER)
        top, bottom = round(self.y * _FINER), round((self.y + self.height) * _FINER)
        if self.outline is not None:
            canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = rgb(self.outline)
            left, right, top, bottom = left + _FINER, right - _FINER, top + _FINER, bottom - _FINER
        inside = canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
        if self.opacity < 1:
            inside[...] = np.rint(inside * (1 - self.opacity) + np.array(rgb(self.colour)) * self.opacity)
        else:
            inside[...] = rgb(self.colour)


@dataclass(frozen=True)
class LineShape:
    """A line through points."""

    points: Sequence[tuple[float, float]]
    colour: Colour = "soft"
    _: KW_ONLY
    width: float = 1.0

    def svg(self) -> str:
        points = " ".join(f"{x:.5g},{y:.5g}" for x, y in self.points)
        return f'<polyline points="{points}" fill="none" stroke-width="{self.width:g}" {_paint("s", self.colour)}/>'

    def draw(self, canvas: Any) -> None:
        points = np.rint(np.array(self.points) * _FINER).astype(np.int32)
        opencv().polylines(canvas, [points], False, rgb(self.colour), max(round(self.width * _FINER), 1), 16)


@dataclass(frozen=True)
class TextShape:
    """A line of text whose baseline starts, is centred or ends at (x, y)."""

    x: float
    y: float
    text: str
    _: KW_ONLY
    size: float = 13
    colour: Colour = "text"
    anchor: Anchor = "start"
    bold: bool = False

    def svg(self) -> str:
        style = f'font-size="{self.size:g}" text-anchor="{self.anchor}"' + (' font-weight="600"' * self.bold)
        at = f'x="{self.x:.6g}" y="{self.y:.6g}"'
        return f"<text {at} {style} {_paint('f', self.colour)}>{escape(self.text)}</text>"

    def draw(self, canvas: Any) -> None:
        cv2 = opencv()
        width, (font, scale, thickness) = text_width(self.text, self.size) * _FINER, _font(self.size)
        left = self.x * _FINER - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        origin = (round(left), round(self.y * _FINER))
        cv2.putText(canvas, _ascii(self.text), origin, font, scale, rgb(self.colour), thickness, cv2.LINE_AA)


@dataclass(frozen=True)
class ImageShape:
    """An image with its upper left corner at (x, y), drawn unscaled. It covers all other shapes."""

    x: int
    y: int
    pixels: Any  # uint8 (height, width, 3)

    def svg(self) -> str:
        height, width = self.pixels.shape[:2]
        content = base64.b64encode(_png(self.pixels)).decode()
        size = f'width="{width}" height="{height}"'
        return f'<image x="{self.x}" y="{self.y}" {size} href="data:image/png;base64,{content}"/>'


Shape = Rectangle | LineShape | TextShape | ImageShape
Fields = ParamSpec("Fields")


def _adds(shape: Callable[Fields, Shape]) -> Callable[Concatenate[Picture, Fields], None]:
    """Return a method that adds a shape. Its arguments are the fields of the shape."""

    def add(picture: Picture, /, *args: Fields.args, **kwargs: Fields.kwargs) -> None:
        picture.shapes.append(shape(*args, **kwargs))

    return add


@dataclass
class Picture:
    """Shapes on a ground of `width` by `height` pixels, painted in the order in which they were added.

    >>> picture = Picture(40, 20)
    >>> picture.rectangle(0, 0, 10, 5, (255, 0, 0))
    >>> picture.svg().count("<rect")
    2
    """

    width: int
    height: int
    shapes: list[Shape] = field(default_factory=list)

    rectangle = _adds(Rectangle)
    line = _adds(LineShape)
    text = _adds(TextShape)
    image = _adds(ImageShape)

    def save(self, path: Path) -> tuple[Path, Path]:
        """Write the figure next to `path` as PNG and as SVG; return both paths."""
        png, svg = path.with_suffix(".png"), path.with_suffix(".svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing_to(svg):
            svg.write_text(self.svg(), encoding="utf-8")
        with writing_to(png):
            png.write_bytes(self.png())
        return png, svg

    def png(self) -> bytes:
        """Return the figure as a PNG file; needs OpenCV."""
        return _png(self.pixels())

    def svg(self, *, inside: bool = False, label: str = "") -> str:
        """Return the figure as an SVG document.

        With `inside`, it is part of a page with `style()`, as wide as there is room.
        """
        size = f'viewBox="0 0 {self.width} {self.height}" font-family="system-ui, Helvetica, Arial, sans-serif"'
        said = f' role="img" aria-label={quoteattr(label)}' if label else ""
        if inside:
            lines = [f"<svg {size}{said}>"]
        else:
            lines = [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" {size}{said}>',
                f"<style>{style()}</style>",
                f'<rect width="{self.width}" height="{self.height}" {_paint("f", "ground")}/>',
            ]
        return "\n".join([*lines, *(shape.svg() for shape in self.shapes), "</svg>\n"])

    def pixels(self) -> Any:
        """Return the figure as uint8 (height, width, 3) RGB, on a light ground; needs OpenCV."""
        cv2 = opencv()
        canvas = np.full((self.height * _FINER, self.width * _FINER, 3), 255, np.uint8)
        for shape in self.shapes:
            if not isinstance(shape, ImageShape):
                shape.draw(canvas)
        canvas = cv2.resize(canvas, (self.width, self.height), interpolation=cv2.INTER_AREA)
        for shape in self.shapes:  # images are drawn unscaled
            if isinstance(shape, ImageShape):
                height, width = shape.pixels.shape[:2]
                canvas[shape.y : shape.y + height, shape.x : shape.x + width] = shape.pixels
        return canvas


def written(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file of a figure, and return its path; missing folders are created."""
    where = local(path, "path")
    with writing(where, f"path {str(path)!r}", "Choose another path, in a folder that you may write to."):
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content)
    return where


def text_width(text: str, size: float) -> float:
    """Return the width of a line of text in a PNG in pixels."""
    return float(opencv().getTextSize(_ascii(text), *_font(size))[0][0]) / _FINER


def _font(size: float) -> tuple[int, float, int]:
    """Return the font, scale and thickness of text in a PNG."""
    return opencv().FONT_HERSHEY_SIMPLEX, size * _FINER / 30, max(round(size * _FINER / 14), 1)


def rgb(colour: Colour) -> tuple[int, int, int]:
    """Return a colour on a light ground."""
    if not isinstance(colour, str):
        return colour
    red, green, blue = bytes.fromhex(PALETTE[colour][0][1:])
    return red, green, blue


def _paint(kind: Literal["f", "s"], colour: Colour, outline: Colour | None = None) -> str:
    """Return the attributes of a colour: a class if it has a name."""
    classes, rest = [], []
    for of, each in ((kind, colour), ("s", outline)):
        if isinstance(each, str):
            classes.append(f"{of}-{each}")
        elif each is not None:
            rest.append(f'{"fill" if of == "f" else "stroke"}="#{bytes(each).hex()}"')
    return " ".join([f'class="{" ".join(classes)}"'] * bool(classes) + rest)


def _png(pixels: Any) -> bytes:
    # encoded in memory, because imwrite reports errors by its return value only
    return bytes(opencv().imencode(".png", pixels[..., ::-1])[1].tobytes())


def _ascii(text: str) -> str:
    """Return the characters that OpenCV's stroke font can draw; letters lose their accents."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return kept.encode("ascii", "replace").decode()
