"""Picture: rectangles, lines, text and images, written as SVG (light and dark) and as PNG."""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

import numpy as np

from penstock.errors import writing_to
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
    x: float
    y: float
    width: float
    height: float
    colour: Colour
    opacity: float = 1.0
    outline: Colour | None = None
    title: str = ""  # tooltip


@dataclass(frozen=True)
class LineShape:
    points: tuple[tuple[float, float], ...]
    colour: Colour
    width: float


@dataclass(frozen=True)
class TextShape:
    x: float
    y: float
    text: str
    size: float
    colour: Colour
    anchor: Anchor
    bold: bool = False


@dataclass(frozen=True)
class ImageShape:
    x: int
    y: int
    pixels: Any  # uint8 (height, width, 3), drawn unscaled


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
    shapes: list[Rectangle | LineShape | TextShape | ImageShape] = field(default_factory=list)

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        colour: Colour,
        *,
        opacity: float = 1.0,
        outline: Colour | None = None,
        title: str = "",
    ) -> None:
        """Add a filled rectangle."""
        self.shapes.append(Rectangle(x, y, width, height, colour, opacity, outline, title))

    def line(self, points: Sequence[tuple[float, float]], colour: Colour = "soft", *, width: float = 1.0) -> None:
        """Add a line through points."""
        self.shapes.append(LineShape(tuple(points), colour, width))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        colour: Colour = "text",
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """Add a line of text whose baseline starts, is centred or ends at (x, y)."""
        self.shapes.append(TextShape(x, y, text, size, colour, anchor, bold))

    def image(self, x: int, y: int, pixels: Any) -> None:
        """Add an image, uint8 (height, width, 3), with its upper left corner at (x, y). It covers all other shapes."""
        self.shapes.append(ImageShape(x, y, pixels))

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
        said = f' role="img" aria-label={_quoted(label)}' if label else ""
        if inside:
            lines = [f"<svg {size}{said}>"]
        else:
            lines = [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" {size}{said}>',
                f"<style>{style()}</style>",
                f'<rect width="{self.width}" height="{self.height}" {_paint("f", "ground")}/>',
            ]
        return "\n".join([*lines, *map(_svg, self.shapes), "</svg>\n"])

    def pixels(self) -> Any:
        """Return the figure as uint8 (height, width, 3) RGB, on a light ground; needs OpenCV."""
        cv2 = opencv()
        canvas = np.full((self.height * _FINER, self.width * _FINER, 3), 255, np.uint8)
        for shape in self.shapes:
            if isinstance(shape, Rectangle):
                _fill(canvas, shape)
            elif isinstance(shape, LineShape):
                points = np.rint(np.array(shape.points) * _FINER).astype(np.int32)
                cv2.polylines(canvas, [points], False, rgb(shape.colour), max(round(shape.width * _FINER), 1), 16)
            elif isinstance(shape, TextShape):
                _write(cv2, canvas, shape)
        canvas = cv2.resize(canvas, (self.width, self.height), interpolation=cv2.INTER_AREA)
        for shape in self.shapes:  # images are drawn unscaled
            if isinstance(shape, ImageShape):
                height, width = shape.pixels.shape[:2]
                canvas[shape.y : shape.y + height, shape.x : shape.x + width] = shape.pixels
        return canvas


def text_width(text: str, size: float) -> float:
    """Return the width of a line of text in a PNG in pixels."""
    cv2 = opencv()
    thickness = max(round(size * _FINER / 14), 1)  # like `_write`
    return float(cv2.getTextSize(_ascii(text), cv2.FONT_HERSHEY_SIMPLEX, size * _FINER / 30, thickness)[0][0]) / _FINER


def shortened(text: str, most: int) -> str:
    """Return at most `most` letters of a text.

    >>> shortened("map(decode_and_resize)", 12)
    'map(decode_…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def rgb(colour: Colour) -> tuple[int, int, int]:
    """Return a colour on a light ground."""
    if not isinstance(colour, str):
        return colour
    red, green, blue = bytes.fromhex(PALETTE[colour][0][1:])
    return red, green, blue


# -- as SVG


def _svg(shape: Rectangle | LineShape | TextShape | ImageShape) -> str:
    if isinstance(shape, ImageShape):
        height, width = shape.pixels.shape[:2]
        content = base64.b64encode(_png(shape.pixels)).decode()
        size = f'width="{width}" height="{height}"'
        return f'<image x="{shape.x}" y="{shape.y}" {size} href="data:image/png;base64,{content}"/>'
    if isinstance(shape, LineShape):
        points = " ".join(f"{x:.5g},{y:.5g}" for x, y in shape.points)
        return f'<polyline points="{points}" fill="none" stroke-width="{shape.width:g}" {_paint("s", shape.colour)}/>'
    at = f'x="{shape.x:.6g}" y="{shape.y:.6g}"'
    if isinstance(shape, TextShape):
        style = f'font-size="{shape.size:g}" text-anchor="{shape.anchor}"' + (' font-weight="600"' * shape.bold)
        return f"<text {at} {style} {_paint('f', shape.colour)}>{escape(shape.text)}</text>"
    paint = _paint("f", shape.colour, shape.outline)
    if shape.opacity < 1:
        paint += f' fill-opacity="{shape.opacity:.3g}"'
    body = f'<rect {at} width="{shape.width:.6g}" height="{shape.height:.6g}" {paint}'
    return f"{body}><title>{escape(shape.title)}</title></rect>" if shape.title else f"{body}/>"


def _paint(kind: Literal["f", "s"], colour: Colour, outline: Colour | None = None) -> str:
    """Return the attributes of a colour: a class if it has a name."""
    classes, rest = [], []
    for of, each in ((kind, colour), ("s", outline)):
        if isinstance(each, str):
            classes.append(f"{of}-{each}")
        elif each is not None:
            rest.append(f'{"fill" if of == "f" else "stroke"}="#{bytes(each).hex()}"')
    return " ".join([f'class="{" ".join(classes)}"'] * bool(classes) + rest)


def _quoted(text: str) -> str:
    return '"' + escape(text, {'"': "&quot;"}) + '"'


# -- as PNG


def _fill(canvas: Any, shape: Rectangle) -> None:
    left, right = round(shape.x * _FINER), round((shape.x + shape.width) * _FINER)
    top, bottom = round(shape.y * _FINER), round((shape.y + shape.height) * _FINER)
    if shape.outline is not None:
        canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = rgb(shape.outline)
        left, right, top, bottom = left + _FINER, right - _FINER, top + _FINER, bottom - _FINER
    inside = canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if shape.opacity < 1:
        inside[...] = np.rint(inside * (1 - shape.opacity) + np.array(rgb(shape.colour)) * shape.opacity)
    else:
        inside[...] = rgb(shape.colour)


def _png(pixels: Any) -> bytes:
    # encoded in memory, because imwrite reports errors by its return value only
    return bytes(opencv().imencode(".png", pixels[..., ::-1])[1].tobytes())


def _ascii(text: str) -> str:
    """Return the characters that OpenCV's stroke font can draw; letters lose their accents."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return kept.encode("ascii", "replace").decode()


def _write(cv2: Any, canvas: Any, shape: TextShape) -> None:
    font, scale, thickness = cv2.FONT_HERSHEY_SIMPLEX, shape.size * _FINER / 30, max(round(shape.size * _FINER / 14), 1)
    text = _ascii(shape.text)
    width = cv2.getTextSize(text, font, scale, thickness)[0][0]
    left = shape.x * _FINER - {"start": 0.0, "middle": width / 2, "end": width}[shape.anchor]
    origin = (round(left), round(shape.y * _FINER))
    cv2.putText(canvas, text, origin, font, scale, rgb(shape.colour), thickness, cv2.LINE_AA)
