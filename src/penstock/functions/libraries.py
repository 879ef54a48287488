"""Tables of library functions: which ones only compute, which change an argument, and what others do.

A function that is in no table counts as one with side effects.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from penstock.functions.code import words
from penstock.functions.ownership import is_installed_path
from penstock.functions.uses import attribute

R = TypeVar("R")

_COMPUTING = """
    builtins math cmath re json struct hashlib hmac zlib bz2.compress bz2.decompress lzma.compress lzma.decompress
    gzip.compress gzip.decompress base64 binascii itertools functools collections operator string unicodedata textwrap
    html urllib.parse bisect heapq statistics fractions decimal numbers array csv.reader csv.DictReader csv.writer
    csv.DictWriter io.BytesIO io.StringIO copy dataclasses typing enum types.SimpleNamespace types.MappingProxyType
    codecs.decode codecs.encode ast.literal_eval colorsys uuid.UUID uuid.uuid3 uuid.uuid5 datetime.datetime
    datetime.date datetime.time datetime.timedelta datetime.timezone pathlib posixpath.basename posixpath.dirname
    posixpath.join posixpath.split posixpath.splitext posixpath.normpath posixpath.isabs posixpath.commonpath
    ntpath.basename ntpath.dirname ntpath.join ntpath.split ntpath.splitext ntpath.normpath ntpath.isabs
    ntpath.commonpath genericpath.commonprefix xml.etree.ElementTree.fromstring contextlib.suppress
    contextlib.nullcontext numpy scipy.signal scipy.ndimage scipy.fft scipy.special penstock.element_key
    penstock.trace.drawing.element_key PIL.Image.fromarray PIL.Image.frombytes PIL.Image.frombuffer PIL.Image.new
    PIL.Image.merge PIL.Image.blend PIL.Image.composite PIL.Image.alpha_composite PIL.Image.Resampling
    PIL.Image.Transpose PIL.Image.Transform PIL.ImageOps PIL.ImageEnhance PIL.ImageFilter PIL.ImageChops"""
_COMPUTING_CV2 = """
    resize flip rotate transpose cvtColor GaussianBlur blur boxFilter medianBlur bilateralFilter filter2D sepFilter2D
    warpAffine warpPerspective remap getRotationMatrix2D getAffineTransform getPerspectiveTransform
    invertAffineTransform undistort copyMakeBorder Canny Sobel Scharr Laplacian threshold adaptiveThreshold equalizeHist
    normalize add subtract multiply divide addWeighted absdiff bitwise_and bitwise_or bitwise_xor bitwise_not min max
    merge split hconcat vconcat repeat LUT inRange erode dilate morphologyEx getStructuringElement pyrDown pyrUp
    findContours contourArea arcLength boundingRect minAreaRect convexHull moments connectedComponents
    connectedComponentsWithStats distanceTransform calcHist integral minMaxLoc mean meanStdDev countNonZero
    convertScaleAbs extractChannel insertChannel matchTemplate imdecode imencode rectangle line circle
    ellipse polylines fillPoly drawContours putText getTextSize applyColorMap cartToPolar polarToCart magnitude phase
    dft idft dct idct"""
_LOOKING = """
    builtins.open io.open gzip.open bz2.open lzma.open wave.open numpy.load numpy.fromfile numpy.loadtxt
    numpy.genfromtxt numpy.fromregex numpy.lib numpy.errstate numpy.geterr numpy.getbufsize numpy.get_printoptions
    numpy.printoptions numpy.array2string numpy.array_repr numpy.array_str numpy.fromiter functools.lru_cache
    functools.cache datetime.datetime.fromtimestamp datetime.datetime.strptime datetime.datetime.strftime
    datetime.datetime.astimezone datetime.date.fromtimestamp pathlib.Path.cwd pathlib.Path.home pathlib.PosixPath.cwd
    pathlib.PosixPath.home hashlib.file_digest textwrap.shorten posixpath ntpath genericpath os.path os.fspath
    os.fsencode os.fsdecode os.listdir os.scandir os.walk os.fwalk os.stat os.lstat os.access os.readlink posix.listdir
    posix.scandir posix.stat posix.lstat posix.access posix.readlink nt.listdir nt.scandir nt.stat nt.lstat sys.intern
    sys.getsizeof time.sleep time.strptime time.strftime time.gmtime time.struct_time calendar difflib glob fnmatch
    zoneinfo stringprep quopri keyword xml.etree.ElementTree.parse cv2.imread PIL.Image.open PIL.ImageDraw
    scipy.linalg scipy.interpolate scipy.spatial scipy.sparse simplejpeg turbojpeg imagecodecs regex xxhash orjson ujson
    rapidjson msgpack zstandard lz4 snappy brotli blosc blosc2 crc32c tokenizers sentencepiece tiktoken unidecode
    jellyfish Levenshtein rapidfuzz skimage.transform skimage.color skimage.filters skimage.exposure pywt ftfy soxr
    resampy pyarrow.array pyarrow.table pyarrow.scalar penstock.image penstock.audio penstock.video penstock.io
    penstock.block penstock.trace penstock.errors penstock.permutation penstock.map_fn penstock.dataset.map_fn
    penstock.Options penstock.options penstock.torch.vision.opened.open_image
    penstock.dataset.create.Create.from_tensors
    penstock.dataset.create.Create.from_tensor_slices penstock.dataset.create.Create.range"""
_UNKNOWN = """
    numpy.seterrcall numpy.geterrcall numpy.show_config numpy.info numpy.test numpy.f2py numpy.ctypeslib numpy.testing
    numpy.distutils numpy.DataSource numpy.frompyfunc numpy.nditer numpy.nested_iters scipy.special.seterr
    scipy.special.errstate functools.singledispatch builtins.memoryview builtins.object.__reduce__"""
_READS = words("distribute load snapshot")  # methods that create a data set and do more
_LISTS = words("from_tensors from_tensor_slices from_list")


class Kind(Enum):
    """The kinds of effects that a function can have in addition to its result."""

    EFFECT = "effect"  # it writes, prints, or calls code that is not known
    RANDOM = "random"  # random numbers that no seed fixes
    SEEDED = "seeded"  # random numbers of generators that can be seeded for each element
    CLOCK = "clock"
    OUTSIDE = "outside"  # it reads files or settings, or waits
    PROCESS = "process"  # its result may differ in another process
    ACCELERATOR = "accelerator"


_KINDS: dict[tuple[Kind, ...], dict[str, str]] = {
    (Kind.EFFECT,): {
        "prints": "builtins.print builtins.breakpoint builtins.help pprint cv2.imshow cv2.waitKey cv2.namedWindow",
        "reads from the terminal": "builtins.input",
        "uses super()": "builtins.super",
        "uses code that is known only at run time": """builtins.exec builtins.eval builtins.compile builtins.__import__
            importlib operator.methodcaller builtins.getattr builtins.globals builtins.locals builtins.vars ctypes
            inspect gc""",
        "changes a model": "torch.nn.modules.batchnorm torch.optim",
        "changes a setting of the library": """torch.set_num_threads torch.set_default_dtype torch.set_default_device
            cv2.setRNGSeed cv2.setNumThreads cv2.setUseOptimized cv2.ocl numpy.seterr numpy.setbufsize
            numpy.set_printoptions pyarrow.set_cpu_count decimal.getcontext decimal.setcontext decimal.localcontext""",
        "calls the operating system": "os posix nt sys platform signal resource atexit locale getpass tempfile",
        "uses threads, processes or queues": """threading _thread multiprocessing concurrent asyncio queue sched
            contextvars""",
        "logs": "logging warnings traceback faulthandler",
        "changes files": """shutil subprocess sqlite3 numpy.save numpy.savez numpy.savez_compressed numpy.savetxt
            numpy.memmap numpy.lib.format.open_memmap cv2.imwrite cv2.imwritemulti cv2.VideoWriter pyarrow.fs
            imagecodecs.imwrite penstock.io.storage penstock.io.tfrecord penstock.io.TFRecordWriter penstock.store
            torch.save torch.serialization.save torchvision.utils.save_image torchvision.io.write_jpeg
            torchvision.io.write_png torchvision.io.write_file torchvision.io.write_video torchaudio.save
            tensorflow.io.write_file""",
        "uses the network": """torch.distributed torch.hub socket ssl http urllib.request ftplib smtplib requests httpx
            aiohttp""",
    },
    (Kind.RANDOM,): {
        "draws random numbers": """random secrets uuid os.urandom numpy.random cv2.randu cv2.randn cv2.randShuffle
            tensorflow.random""",
    },
    (Kind.SEEDED, Kind.ACCELERATOR): {
        "draws random numbers": """torch.rand torch.randn torch.randint torch.randperm torch.rand_like torch.randn_like
            torch.randint_like torch.normal torch.bernoulli torch.multinomial torch.poisson torch.random
            torch.manual_seed torch.seed torch.cuda.manual_seed torch.nn.functional.dropout torch.nn.modules.dropout""",
    },
    (Kind.CLOCK,): {
        "reads the clock": """time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow
            datetime.date.today""",
    },
    (Kind.PROCESS,): {
        "calls id or hash, whose results differ between processes": "builtins.id builtins.hash",
    },
    (Kind.PROCESS, Kind.OUTSIDE): {
        "reads settings of its process": """os.environ os.environb os.getenv os.getenvb os.getcwd os.cpu_count
            posix.getcwd posix.cpu_count nt.getcwd nt.cpu_count""",
    },
    (Kind.ACCELERATOR,): {
        "may use an accelerator, which processes cannot share": """torch torchvision torchaudio jax jaxlib tensorflow
            cupy mxnet paddle flax keras""",
    },
}
_DRAWING = words(  # random classes of torchvision and torchaudio whose names do not begin with Random
    """ColorJitter AutoAugment RandAugment TrivialAugmentWide AugMix ElasticTransform GaussianBlur GaussianNoise MixUp
    CutMix ScaleJitter JPEG"""
)
Rule = tuple[tuple[Kind, ...], str]
_RULES: dict[str, Rule | None] = {  # by dotted path; the longest path applies; no kinds: the function only computes
    **dict.fromkeys(words(_COMPUTING), ((), "")),
    **{f"cv2.{name}": ((), "") for name in words(_COMPUTING_CV2)},
    **dict.fromkeys(words(_LOOKING), ((Kind.OUTSIDE,), "reads files or settings, or waits")),
    **dict.fromkeys(words("numpy.lib.stride_tricks numpy.lib.array_utils"), ((), "")),
    **dict.fromkeys(words(_UNKNOWN)),
    **{path: (kinds, why) for kinds, found in _KINDS.items() for why, paths in found.items() for path in words(paths)},
}
ROOTS = {path.partition(".")[0] for path in _RULES}
_INTERNAL = {  # private modules, and the public modules whose names they define
    **{
        f"_{name}": name
        for name in words("io json struct bisect heapq operator collections functools codecs csv random")
    },
    **{f"_{name}": name for name in words("datetime decimal pickle statistics lzma bz2 string")},
    **dict.fromkeys(words("_hashlib _blake2 _sha1 _sha2 _sha3 _sha256 _sha512 _md5"), "hashlib"),
    "_sre": "re",
    "_collections_abc": "collections",
    "_pydecimal": "decimal",
    "_pydatetime": "datetime",
}
_WRITTEN = words(  # library functions that change their first argument
    """heapq.heappush heapq.heappop heapq.heapify heapq.heapreplace heapq.heappushpop bisect.insort bisect.insort_left
    bisect.insort_right operator.setitem operator.delitem operator.iadd operator.ior operator.iconcat operator.imul
    operator.isub operator.iand operator.ixor operator.ifloordiv operator.itruediv operator.imod operator.ipow
    operator.ilshift operator.irshift operator.imatmul builtins.setattr builtins.delattr numpy.copyto
    numpy.put numpy.place numpy.putmask numpy.fill_diagonal numpy.put_along_axis numpy.nan_to_num
    cv2.rectangle cv2.line cv2.circle cv2.putText cv2.polylines cv2.fillPoly cv2.ellipse cv2.drawContours
    numpy.add.at"""
)
_FIRST_TWO = words(  # functions of OpenCV that only read their first two arguments
    """cv2.warpAffine cv2.warpPerspective cv2.remap cv2.LUT cv2.add cv2.subtract cv2.multiply cv2.divide cv2.absdiff
    cv2.bitwise_and cv2.bitwise_or cv2.bitwise_xor cv2.min cv2.max cv2.matchTemplate"""
)
_C_NUMPY = words("numpy.dot numpy.concatenate numpy.inner numpy.vdot numpy.array numpy.asarray numpy.ascontiguousarray")
_FRESH = words(  # the results of these hold no part of their arguments
    """builtins.len builtins.abs builtins.int builtins.float builtins.str builtins.bytes builtins.bool builtins.round
    builtins.any builtins.all builtins.range builtins.repr builtins.divmod builtins.pow builtins.format copy.deepcopy
    math json re struct hashlib zlib base64 binascii string textwrap html urllib.parse unicodedata numpy.linalg
    numpy.fft numpy.dot numpy.matmul numpy.outer numpy.tensordot numpy.einsum numpy.where numpy.concatenate numpy.stack
    numpy.vstack numpy.hstack numpy.pad numpy.tile numpy.repeat numpy.roll numpy.sort numpy.argsort numpy.unique
    numpy.searchsorted numpy.cumsum numpy.diff numpy.clip numpy.round numpy.interp numpy.histogram numpy.bincount
    numpy.digitize numpy.zeros_like numpy.ones_like numpy.full_like numpy.empty_like numpy.copy numpy.sum numpy.prod
    numpy.mean numpy.std numpy.var numpy.max numpy.min numpy.argmax numpy.argmin numpy.any numpy.all numpy.median
    numpy.percentile numpy.take numpy.isin numpy.nonzero numpy.convolve numpy.append numpy.delete cv2"""
)


def rule(path: str) -> Rule | None:
    """Return what a library function does beside computing, by its dotted path; None if it is in no table.

    >>> rule("json.loads"), rule("time.time"), rule("anything.else")
    (((), ''), ((<Kind.CLOCK: 'clock'>,), 'reads the clock (`time.time`)'), None)
    """
    if not is_installed_path(path):  # a module of the user can have the name of a library
        return None
    if path.startswith("penstock.") and path.endswith("Dataset") and not path.endswith(".Dataset"):
        return (Kind.OUTSIDE,), f"creates a data set of files (`{path}`)"
    found = _longest(_RULES, path)
    if found is None or not found[1]:
        return found
    kinds, why = found
    if kinds == (Kind.ACCELERATOR,) and _draws(path):
        kinds, why = (Kind.SEEDED, Kind.ACCELERATOR), "draws random numbers"
    return kinds, why if path.startswith("builtins.") else f"{why} (`{path}`)"


def _longest(table: Mapping[str, R], path: str) -> R | None:
    """Return the entry of the longest leading part of a path that is in the table."""
    place = path
    while place:
        if place in table:
            return table[place]
        place = place.rpartition(".")[0]
    return None


def is_written(path: str, function: Any, argument: int | str) -> bool:
    """Return True unless a library function is known to only read an argument, given by its position or name."""
    if isinstance(argument, str):
        return argument in ("out", "dst", "overwrite_input") or argument.startswith("overwrite")
    if path in _WRITTEN or path == "struct.pack_into":
        return argument == (path == "struct.pack_into")
    nin = getattr(function, "nin", None)  # the number of inputs of a ufunc
    if type(nin) is int:
        return argument >= nin
    if path.startswith("cv2."):
        return argument > (path in _FIRST_TWO)
    if path in _C_NUMPY:
        return argument > 1
    if path.startswith(("numpy.", "scipy.")) and path != "numpy.where":
        names = _parameters(function)
        return argument >= len(names) or names[argument] in ("out", "output") or names[argument].startswith("overwrite")
    return False


@cache
def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function in C has no signature
        return ()


def is_fresh(path: str) -> bool:
    """Return True if the results of a library function never hold a part of its arguments."""
    return _longest(dict.fromkeys(_FRESH, True), path) is not None


def dataset_class() -> type:
    """Return penstock's Dataset without an import."""
    return getattr(sys.modules.get("penstock.dataset.dataset"), "Dataset", type)


@cache
def planning(dataset: type) -> frozenset[str]:
    """Return the methods of Dataset that read nothing, or at most list files. Their data sets are read later."""
    found = {"cardinality", "options"}
    for name in (name for name in dir(dataset) if name[0] != "_"):
        function = getattr(dataset, name)
        gives = str(function.__annotations__.get("return")) if isinstance(function, FunctionType) else ""
        if gives.startswith("Dataset") and name not in _READS and (name[:5] != "from_" or name in _LISTS):
            found.add(name)
    return frozenset(found)


def _draws(path: str) -> bool:
    """Return True if a transform of torchvision or torchaudio uses random numbers."""
    name = path.rpartition(".")[2]
    return path.startswith(("torchvision.", "torchaudio.")) and (name.startswith("Random") or name in _DRAWING)


def unknown(path: str) -> str:
    """Return the sentence about a library function that is not in the tables."""
    return f"uses `{path}`, whose effects are not known"


def recogniser() -> Any:
    """Return the module that recognises transforms of torchvision, or None for a program without torchvision."""
    return import_module("penstock.torch.vision.own_code") if "torchvision" in sys.modules else None


def path_of(value: Any) -> str:
    """Return the public dotted path of a function or class of a library."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__name__
    place = getattr(value, "__module__", None) or ""
    name = str(name).removeprefix("_VariableFunctionsClass.")  # a private class of torch
    if place.startswith("numpy.random."):  # the path names the public module
        place = "numpy.random"
    if not place and hasattr(builtins, name.partition(".")[0]):  # a method of a builtin class
        place = "builtins"
    root, dot, rest = place.partition(".")
    return f"{_INTERNAL.get(root, root)}{dot}{rest}.{name}" if place else name


def known_place(function: Any) -> str | None:
    """Return the dotted path under which a library has this very function or class, or None.

    The path must lead to the same object, because other code may have replaced the function of the library.
    """
    name = attribute(function, "__qualname__") or attribute(function, "__name__")
    own = attribute(function, "__module__")
    if type(name) is not str or not (own is None or type(own) is str):
        return None
    name = name.removeprefix("_VariableFunctionsClass.")  # a private class of torch
    for place in (own, "builtins", "numpy", "cv2", "torch"):
        found: Any = sys.modules.get(place) if place else None
        for part in name.split(".") if found is not None else ():
            found = getattr(found, part, None)
        if found is function and function is not None:
            place = "numpy.random" if str(place).startswith("numpy.random.") else str(place)
            root, dot, rest = place.partition(".")
            return f"{_INTERNAL.get(root, root)}{dot}{rest}.{name}"
    return None
