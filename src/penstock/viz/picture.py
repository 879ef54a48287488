"""Picture: rectangles, text and images, written as SVG and as PNG."""

from __future__ import annotations

import base64
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

import numpy as np

from penstock.image.backends import opencv

Colour = tuple[int, int, int]
Anchor = Literal["start", "middle", "end"]

# PNGs are drawn this much larger and then scaled down, which smooths the letters.
_FINER = 3


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    colour: Colour


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    text: str
    size: float
    colour: Colour
    anchor: Anchor


@dataclass(frozen=True)
class Image:
    x: int
    y: int
    pixels: Any  # uint8 (height, width, 3), drawn as it is


@dataclass
class Picture:
    """Rectangles, text and images on white, `width` by `height` pixels, painted in the order in which they came.

    >>> picture = Picture(40, 20)
    >>> picture.rectangle(0, 0, 10, 5, (255, 0, 0))
    >>> picture.svg().count("<rect")
    2
    """

    width: int
    height: int
    shapes: list[Rectangle | Text | Image] = field(default_factory=list)

    def rectangle(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Add a filled rectangle."""
        self.shapes.append(Rectangle(x, y, width, height, colour))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        colour: Colour = (30, 41, 59),
        anchor: Anchor = "start",
    ) -> None:
        """Add a line of text whose base line begins, is centred or ends at (x, y)."""
        self.shapes.append(Text(x, y, text, size, colour, anchor))

    def image(self, x: int, y: int, pixels: Any) -> None:
        """Add an image, uint8 (height, width, 3), with its upper left corner at (x, y); in front of all else."""
        self.shapes.append(Image(x, y, pixels))

    def save(self, path: Path) -> tuple[Path, Path]:
        """Write the picture beside `path` as PNG and as SVG; returns both paths."""
        png, svg = path.with_suffix(".png"), path.with_suffix(".svg")
        path.parent.mkdir(parents=True, exist_ok=True)
        svg.write_text(self.svg(), encoding="utf-8")
        png.write_bytes(self.png())
        return png, svg

    def png(self) -> bytes:
        """The picture as a PNG file; needs OpenCV."""
        return _png(self.pixels())

    def svg(self) -> str:
        """The picture as an SVG document."""
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="Helvetica, Arial, sans-serif">',
            f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>',
        ]
        for shape in self.shapes:
            if isinstance(shape, Image):
                height, width = shape.pixels.shape[:2]
                content = base64.b64encode(_png(shape.pixels)).decode()
                size = f'width="{width}" height="{height}"'
                lines.append(f'<image x="{shape.x}" y="{shape.y}" {size} href="data:image/png;base64,{content}"/>')
                continue
            colour = "#" + bytes(shape.colour).hex()
            at = f'x="{shape.x:.4g}" y="{shape.y:.4g}"'
            if isinstance(shape, Rectangle):
                size = f'width="{shape.width:.4g}" height="{shape.height:.4g}"'
                lines.append(f'<rect {at} {size} fill="{colour}"/>')
            else:
                style = f'font-size="{shape.size:g}" fill="{colour}" text-anchor="{shape.anchor}"'
                lines.append(f"<text {at} {style}>{escape(shape.text)}</text>")
        return "\n".join([*lines, "</svg>\n"])

    def pixels(self) -> Any:
        """The picture as uint8 (height, width, 3) RGB; needs OpenCV."""
        cv2 = opencv()
        canvas = np.full((self.height * _FINER, self.width * _FINER, 3), 255, np.uint8)
        for shape in self.shapes:
            if isinstance(shape, Rectangle):
                left, right = round(shape.x * _FINER), round((shape.x + shape.width) * _FINER)
                top, bottom = round(shape.y * _FINER), round((shape.y + shape.height) * _FINER)
                canvas[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = shape.colour
            elif isinstance(shape, Text):
                _write(cv2, canvas, shape)
        canvas = cv2.resize(canvas, (self.width, self.height), interpolation=cv2.INTER_AREA)
        for shape in self.shapes:  # as they are, and not drawn larger first
            if isinstance(shape, Image):
                height, width = shape.pixels.shape[:2]
                canvas[shape.y : shape.y + height, shape.x : shape.x + width] = shape.pixels
        return canvas


def text_width(text: str, size: float) -> float:
    """How many pixels a line of text of that size takes in a PNG."""
    cv2 = opencv()
    thickness = max(round(size * _FINER / 14), 1)  # as `_write` draws it
    return float(cv2.getTextSize(_ascii(text), cv2.FONT_HERSHEY_SIMPLEX, size * _FINER / 30, thickness)[0][0]) / _FINER


def _png(pixels: Any) -> bytes:
    # Through memory: imwrite reports a folder that cannot be written by a return value only.
    return bytes(opencv().imencode(".png", pixels[..., ::-1])[1].tobytes())


def _ascii(text: str) -> str:
    """What OpenCV's own stroke font can draw; letters lose their accents."""
    plain = unicodedata.normalize("NFKD", text.replace("…", "...").replace("–", "-"))
    kept = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return kept.encode("ascii", "replace").decode()


def _write(cv2: Any, canvas: Any, shape: Text) -> None:
    font, scale, thickness = cv2.FONT_HERSHEY_SIMPLEX, shape.size * _FINER / 30, max(round(shape.size * _FINER / 14), 1)
    text = _ascii(shape.text)
    width = cv2.getTextSize(text, font, scale, thickness)[0][0]
    left = shape.x * _FINER - {"start": 0.0, "middle": width / 2, "end": width}[shape.anchor]
    origin = (round(left), round(shape.y * _FINER))
    cv2.putText(canvas, text, origin, font, scale, shape.colour, thickness, cv2.LINE_AA)
