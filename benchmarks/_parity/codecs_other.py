"""BMP, WebP and JPEG files of many kinds, valid and damaged."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray


def waves_image(height: int, width: int, channels: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng(height * 100 + width)
    y, x = np.mgrid[:height, :width]
    waves = [100 + 60 * np.sin(x / (3 + c) + y / (5 + 2 * c)) + 50 * (x > y) for c in range(channels)]
    return np.clip(np.stack(waves, -1) + rng.normal(0, 9, (height, width, channels)), 0, 255).astype(np.uint8)


def bmp(
    depth: int,
    *,
    height: int = 5,
    width: int = 7,
    down: bool = False,
    header: int = 40,
    colours: bytes = b"",
    compression: int = 0,
    pixels: bytes | None = None,
    gap: int = 0,
) -> bytes:
    stride = (width * depth + 31) // 32 * 4
    if pixels is None:
        pixels = np.random.default_rng(depth).integers(0, 256, height * stride).astype(np.uint8).tobytes()
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, depth)
    else:
        info = struct.pack(
            "<IiiHHIIiiII", header, width, -height if down else height, 1, depth, compression, 0, 0, 0, 0, 0
        )
        if header > 40:
            info += struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000) + bytes(header - 56)
    start = 14 + len(info) + len(colours) + gap
    return b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start) + info + colours + bytes(gap) + pixels


def bmps() -> Iterator[tuple[str, bytes]]:
    grey = bytes(value for i in range(256) for value in (i, i, i, 0))
    colours = np.random.default_rng(8).integers(0, 256, 1024).astype(np.uint8).tobytes()
    for depth, table in ((24, b""), (32, b""), (8, grey), (8, colours), (4, colours[:64]), (1, colours[:8]), (16, b"")):
        kind = f"bmp {depth}{' grey' * (table == grey)}"
        yield kind, bmp(depth, colours=table)
        yield f"{kind} top-down", bmp(depth, colours=table, down=True)
    for header in (108, 124):
        yield f"bmp 32 header {header}", bmp(32, header=header, compression=3)
        yield f"bmp 24 header {header}", bmp(24, header=header)
    yield "bmp 24 header 12", bmp(24, header=12)
    yield "bmp 8 header 12", bmp(8, header=12, colours=colours[:768])
    yield "bmp 24 gap", bmp(24, gap=10)
    yield "bmp 24 1x1", bmp(24, height=1, width=1)
    yield (
        "bmp 8 4x4 run lengths",
        bmp(8, height=4, width=4, colours=grey, compression=1, pixels=b"\4\7\0\0" * 4 + b"\0\1"),
    )
    yield (
        "bmp 4 4x4 run lengths",
        bmp(4, height=4, width=4, colours=colours[:64], compression=2, pixels=b"\4\x77\0\0" * 4 + b"\0\1"),
    )
    whole = bmp(24)
    yield "bmp cut", whole[:-10]
    yield "bmp only a header", whole[:54]
    yield "bmp half a header", whole[:30]
    yield "bmp bytes after the end", whole + b"appended"
    for name, height, width in (
        ("60000x60000", 60000, 60000),
        ("0x0", 0, 0),
        ("-5 wide", 5, -5),
        ("1000x1000", 1000, 1000),
    ):
        yield f"bmp claims {name}", whole[:18] + struct.pack("<ii", width, height) + whole[26:]
    yield "bmp lowest height", whole[:22] + struct.pack("<i", -(1 << 31)) + whole[26:]
    yield "bmp offset beyond", whole[:10] + struct.pack("<I", 1 << 30) + whole[14:]
    yield "bmp offset 0", whole[:10] + struct.pack("<I", 0) + whole[14:]


def webps() -> Iterator[tuple[str, bytes]]:
    def encoded(image: NDArray[np.uint8], quality: int) -> bytes:
        return bytes(cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, quality])[1])

    lossy, lossless = encoded(waves_image(17, 21, 3), 80), encoded(waves_image(9, 11, 3), 101)
    yield "webp lossy", lossy
    yield "webp lossless", lossless
    yield "webp alpha", encoded(waves_image(17, 21, 4), 80)
    yield "webp lossless alpha", encoded(waves_image(9, 11, 4), 101)
    yield "webp grey", encoded(waves_image(9, 11, 1), 101)
    frames = cv2.Animation()
    frames.frames = [waves_image(8, 12, 4), 255 - waves_image(8, 12, 4), waves_image(8, 12, 4)[::-1].copy()]
    frames.durations = [100, 100, 100]
    played = bytes(cv2.imencodeanimation(".webp", frames)[1])
    yield "webp animated", played
    for name, whole in (("lossy", lossy), ("lossless", lossless), ("animated", played)):
        yield f"webp {name} cut", whole[: len(whole) * 2 // 3]
        yield f"webp {name} only a header", whole[:30]
        yield f"webp {name} bytes after the end", whole + b"appended"
    for at in (22, 40, 60):
        yield f"webp lossless damaged at {at}", lossless[:at] + bytes([lossless[at] ^ 0x55]) + lossless[at + 1 :]
    huge = struct.pack("<I", 0x2F | ((16383 | 16383 << 14) << 8 & 0xFFFFFFFF))[:4] + b"\x0f" + bytes(20)
    yield (
        "webp lossless claims 16384x16384",
        b"RIFF" + struct.pack("<I", 4 + 8 + len(huge)) + b"WEBPVP8L" + struct.pack("<I", len(huge)) + huge,
    )
    at = lossy.index(b"\x9d\x01\x2a") + 3
    yield "webp lossy claims 16383x16383", lossy[:at] + struct.pack("<HH", 16383, 16383) + lossy[at + 4 :]


def _segment(kind: int, payload: bytes) -> bytes:
    return bytes([0xFF, kind]) + struct.pack(">H", len(payload) + 2) + payload


def _rotated(orientation: int) -> bytes:
    entry = struct.pack(">HHIHH", 0x112, 3, 1, orientation, 0)
    return _segment(0xE1, b"Exif\0\0MM\0*\0\0\0\x08\0\x01" + entry + bytes(4))


# 16 x 16 pixels, written by libjpeg-turbo with TJPARAM_ARITHMETIC and TJPARAM_PRECISION, which no package offers
ARITHMETIC = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYn"
    "KSopGR8tMC0oMCUoKSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgo"
    "KCgoKCgoKCj/yQARCAAQABADAREAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwDR2V4phO5u9AwsDNuG05p7ENlMMnfy"
    "yCoCOjczSIFGUj43ZTjlMOvjJ1vCwm9kO3pEPDgmQsDBW6nA0AEHcSb8Y3qC5dy1SocltKYnvbOToP/Z"
)
ARITHMETIC_PROGRESSIVE = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYn"
    "KSopGR8tMC0oMCUoKSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgo"
    "KCgoKCgoKCj/ygARCAAQABADAREAAhEBAxEB/8wABgAQARD/2gAMAwEAAhADEAAAAdCsNc5IiPxzR5OXGC2t/8wABBAF/9oACAEB"
    "AAEFAmFXILv2mYME09OA/8wABBEF/9oACAEDAQE/ATa1S0sZwA82Q+JYif/MAAQRBf/aAAgBAgEBPwEX0bO0tvGI3FP/zAAEEAX/"
    "2gAIAQEABj8C64D/zAAEEAX/2gAIAQEAAT8h6AVKrF952YD/2gAMAwEAAgADAAAAEP5Q/8wABBEF/9oACAEDAQE/EBmw3zbY/8wA"
    "BBEF/9oACAECAQE/EAbaO/Fb/8wABBAF/9oACAEBAAE/EPTPmQenrOM/L3hA/9k="
)
TWELVE_BITS = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYn"
    "KSopGR8tMC0oMCUoKSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgo"
    "KCgoKCgoKCj/wQARDAAQABADAREAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAACwkK/8QAIxAAAAYBBAIDAAAAAAAAAAAAAQID"
    "BAUGCAAJChESQRMxUf/EABgBAAIDAAAAAAAAAAAAAAAAAAcIBQkK/8QAIxEAAQIGAgIDAAAAAAAAAAAAAQIRAAMEBQYHCCEJQXGB"
    "wf/aAAwDAQACEQMRAD8AqxSoik7cu3ykQpWsa8bRQfhBAQJqV0zhFTmF7RNWlw8CvkztOlwixLoadYCmaDBuVPuTzuS2RM7V4SXV"
    "ct1HZ0gKRQRDryENW71k6h1jiCpq2SQn8hI+HWlbtvfYkmomSytBWPT+41ncx/dbZ0CgzlCqsyVL40joARJTr0IetCbjHqqTYLYm"
    "41SGYP3Ae3NnFw2xmgtFCSpJW3XzB6mOtCsOVmURpuTIs7SXe+fZgE32bSZeRbktIxu1TrbSzWIBHRjXJ4eeFdNh9hk5Rd5IDJCn"
    "I+4//9k="
)
LOSSLESS = base64.b64decode(
    "/9j/7gAOQWRvYmUAZAAAAAAA/8MAEQgAEAAQA1IRAEcRAEIRAP/EABkAAQEBAQEBAAAAAAAAAAAAAAQDBQIBAP/aAAwDUgBHAEIA"
    "AQAAw8PD03L0nMaxSFK9teXdSfUz5fZh/Msk8wUQBOUBZgL0Ia0W03Me1alqohHNbG+oHjrNj9ll4zByzgwEA0Al+COwxsRfRctj"
    "FXSn6yIdVH53nS+zD+ZZJZoYhCcoC8gJ2IiijUiz2rStXV0cUsX6mfx7mw+yy8Zgo54YDAaQSehJcY3GGpFlrXVKPLXP7UXnedH7"
    "LNzlknnBgEJzgL4AlRjWQehAl72QpXt7y7sT6mfP3Mh5lk4zBSAE5QGmAnQiJINxh6UR1taiEc1ub2oees2P2WbnMHLODEQTQAX4"
    "JLCG0o9CA9TglK1+teHdh/d50vcw/mWTjNFEITlAbkBOxDUQbzj05E0/C/UpxW5fqZ/HWbH7LLxmDnnhgMBpBL6ElxjcUejEepwT"
    "T+N53Q/VReUzpfZZ/Msk84MQhOcBfAFqIayj0Dj05E0/i6fZp9dk+pn8dZkPssvGYKQAwKA0wl6CNIxuMPSiTU5Jp+m0anj92Hzv"
    "Nj9lm8zCSzgxEE8AF+ASwyNIPQgPUmTT+Lp9mdeJ/us6fuZD7LJxmiiEMCgNyAnYiKIN5h6cSafhNT02hY60yLz7mx+yzc5g554Y"
    "DCeQC+hJcQ3FHowJqcE0/i6VDNRFKpl4+yz+ZZOM4UghOcBvAEqIiyD0Dj05D0/C6fRtC0FJjRnA5/ZZecwcgBiUBphL0EiRjcUe"
    "lEepwTT+No1O1ELLn63z/9k="
)


def jpegs() -> Iterator[tuple[str, bytes]]:
    colour, grey = waves_image(19, 26, 3), waves_image(19, 26, 1)
    ink = waves_image(19, 26, 4)
    for subsampling in ("444", "422", "420", "440", "411"):
        yield f"jpeg {subsampling}", simplejpeg.encode_jpeg(colour, 90, "RGB", subsampling)
    yield "jpeg grey", simplejpeg.encode_jpeg(grey, 90, "GRAY", "Gray")
    options: dict[str, list[Any]] = {
        "progressive": [cv2.IMWRITE_JPEG_PROGRESSIVE, 1],
        "optimised": [cv2.IMWRITE_JPEG_OPTIMIZE, 1],
        "restart": [cv2.IMWRITE_JPEG_RST_INTERVAL, 1],
        "coarse": [cv2.IMWRITE_JPEG_QUALITY, 5],
    }
    for name, setting in options.items():
        yield f"jpeg {name}", bytes(cv2.imencode(".jpg", colour, setting)[1])
        yield f"jpeg grey {name}", bytes(cv2.imencode(".jpg", grey, setting)[1])
    whole = simplejpeg.encode_jpeg(colour, 90, "RGB", "420")
    ycck = simplejpeg.encode_jpeg(ink, 90, "CMYK", "420")
    adobe = ycck.index(b"Adobe") + 11
    yield "jpeg YCCK", ycck
    yield "jpeg YCCK 444", simplejpeg.encode_jpeg(ink, 90, "CMYK", "444")
    yield "jpeg CMYK", ycck[:adobe] + b"\0" + ycck[adobe + 1 :]
    yield "jpeg CMYK without Adobe", ycck.replace(b"Adobe", b"adobE")
    yield "jpeg RGB by Adobe", whole[:2] + _segment(0xEE, b"Adobe\0\x64\0\0\0\0\0") + whole[20:]
    for orientation in (3, 6):
        yield f"jpeg EXIF orientation {orientation}", whole[:2] + _rotated(orientation) + whole[20:]
    yield "jpeg arithmetic", ARITHMETIC
    yield "jpeg arithmetic progressive", ARITHMETIC_PROGRESSIVE
    yield "jpeg 12 bits", TWELVE_BITS
    yield "jpeg predictive", LOSSLESS
    yield "jpeg comment", whole[:2] + _segment(0xFE, b"a comment") + whole[2:]
    yield "jpeg JFIF 0", whole[:11] + b"\0\0" + whole[13:]
    yield "jpeg bytes after the end", whole + b"appended"
    yield "jpeg bytes before the end", whole[:-2] + b"\1" * 9 + whole[-2:]
    yield "jpeg bytes between segments", whole[:20] + b"\0\0" + whole[20:]
    yield "jpeg fill bytes", whole[:20] + b"\xff\xff" + whole[20:]
    yield "jpeg zeros before", b"\0" + whole
    yield "jpeg cut", whole[: len(whole) * 3 // 4]
    yield "jpeg cut by the end marker", whole[:-2]
    yield "jpeg missing middle", whole[: len(whole) * 3 // 4] + whole[-2:]
    yield "jpeg only a header", whole[:100]
    at = whole.index(b"\xff\xc0")
    for name, height, width in (("65500x65500", 65500, 65500), ("0x0", 0, 0), ("2000x2000", 2000, 2000)):
        yield f"jpeg claims {name}", whole[: at + 5] + struct.pack(">HH", height, width) + whole[at + 9 :]
    yield "jpeg of 2 components", whole[: at + 9] + b"\2" + whole[at + 10 :]
    yield "jpeg without tables", whole[:20] + whole[at:]
    scan = whole.index(b"\xff\xda")
    for delta in (20, 40, 80):
        yield f"jpeg damaged scan at {delta}", whole[: scan + delta] + b"\x5a\xa5" + whole[scan + delta + 2 :]


def files() -> Iterator[tuple[str, bytes]]:
    for kind in (bmps, webps, jpegs):
        yield from kind()
    yield "nothing", b""
    yield "text", b"not an image at all"
    yield "only a signature", b"\x89PNG\r\n\x1a\n"
    yield "half a JPEG signature", b"\xff\xd8"
    yield "RIFF of another kind", b"RIFF\0\0\0\0WAVEfmt "
