"""What is known of the functions of libraries: which leave no trace, which change an argument, which do more."""

from __future__ import annotations

import builtins
import sys
from functools import cache
from types import FunctionType
from typing import Any

from penstock.functions.code import words
from penstock.functions.ownership import is_installed_path

_HARMLESS = """
    builtins math cmath re json struct hashlib hmac zlib bz2 lzma gzip.compress gzip.decompress base64 binascii
    itertools functools collections operator string unicodedata textwrap html urllib.parse bisect heapq
    statistics fractions decimal numbers array io csv copy datetime calendar enum dataclasses typing types
    codecs difflib pickle ast.literal_eval xml.etree posixpath ntpath genericpath os.path os.fspath os.fsencode
    os.fsdecode pathlib contextlib colorsys zoneinfo stringprep quopri abc warnings.catch_warnings graphlib
    keyword glob fnmatch os.listdir os.scandir os.walk os.fwalk os.stat os.lstat os.access os.readlink posix.listdir
    posix.scandir posix.stat posix.lstat posix.access posix.readlink nt.listdir nt.scandir nt.stat nt.lstat sys.intern
    sys.getsizeof uuid.UUID uuid.uuid3 uuid.uuid5 time.sleep time.strptime time.strftime time.gmtime time.struct_time
    numpy scipy cv2 PIL simplejpeg turbojpeg imagecodecs regex xxhash orjson ujson rapidjson msgpack zstandard lz4
    snappy brotli blosc blosc2 crc32c tokenizers sentencepiece tiktoken unidecode jellyfish Levenshtein rapidfuzz
    skimage pywt ftfy soxr resampy pyarrow penstock.image penstock.audio penstock.video penstock.io penstock.block
    penstock.trace penstock.element_key penstock.errors penstock.permutation penstock.map_fn penstock.dataset.map_fn
    penstock.Options penstock.options
    penstock.dataset.create.Create.from_tensors penstock.dataset.create.Create.from_tensor_slices
    penstock.dataset.create.Create.range"""
# Of these it is known that they do nothing but compute: what they give follows from what they are given. They read no
# file, clock, locale, environment or state that others may change; so nobody sees when they are called.
_COMPUTING = """
    builtins math cmath re json.loads json.dumps json.decoder json.encoder struct hashlib hmac zlib bz2.compress
    bz2.decompress lzma.compress lzma.decompress gzip.compress gzip.decompress base64 binascii itertools functools
    collections operator string unicodedata textwrap.dedent textwrap.wrap textwrap.fill textwrap.shorten html
    urllib.parse bisect heapq statistics fractions array csv.reader csv.DictReader io.BytesIO io.StringIO copy
    dataclasses typing.cast enum types.SimpleNamespace codecs.decode codecs.encode ast.literal_eval colorsys uuid.UUID
    uuid.uuid3 uuid.uuid5
    datetime.datetime datetime.date datetime.time datetime.timedelta datetime.timezone pathlib
    posixpath.basename posixpath.dirname posixpath.join posixpath.split posixpath.splitext posixpath.normpath
    posixpath.isabs posixpath.commonpath ntpath.basename ntpath.dirname ntpath.join ntpath.split ntpath.splitext
    ntpath.normpath ntpath.isabs ntpath.commonpath genericpath.commonprefix
    numpy scipy.signal scipy.ndimage scipy.fft scipy.special penstock.element_key
    penstock.trace.drawing.element_key
    PIL.Image.fromarray PIL.Image.frombytes PIL.Image.frombuffer PIL.Image.new PIL.Image.merge PIL.Image.blend
    PIL.Image.composite PIL.Image.alpha_composite PIL.Image.Resampling PIL.Image.Transpose PIL.Image.Transform
    PIL.ImageOps PIL.ImageEnhance PIL.ImageFilter PIL.ImageChops"""
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
    builtins.open numpy.load numpy.fromfile numpy.loadtxt numpy.genfromtxt numpy.fromregex numpy.save numpy.savez
    numpy.savetxt numpy.memmap numpy.lib numpy.random numpy.errstate numpy.seterr numpy.geterr numpy.seterrcall
    numpy.geterrcall numpy.setbufsize numpy.getbufsize numpy.set_printoptions numpy.get_printoptions
    numpy.printoptions numpy.array2string numpy.array_repr numpy.array_str numpy.show_config numpy.info numpy.test
    numpy.f2py numpy.ctypeslib numpy.testing numpy.distutils numpy.DataSource numpy.frompyfunc numpy.fromiter
    datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow datetime.datetime.fromtimestamp
    datetime.datetime.strptime datetime.datetime.astimezone datetime.date.today datetime.date.fromtimestamp
    pathlib.Path.cwd pathlib.Path.home pathlib.PosixPath.cwd pathlib.PosixPath.home scipy.special.seterr
    scipy.special.errstate hashlib.file_digest functools.lru_cache functools.cache"""
DATASET = ("penstock.dataset.dataset", "Dataset")
_READS = words("distribute load snapshot")  # methods of data sets that make one, of which more can be seen
_LISTS = words("from_tensors from_tensor_slices from_list")  # of those that hold other libraries' data, the plain ones
_VISIBLE = {
    "prints": "builtins.print builtins.breakpoint builtins.help pprint cv2.imshow cv2.waitKey cv2.namedWindow",
    "reads from the terminal": "builtins.input",
    "uses super()": "builtins.super",
    "runs code that only running shows": """builtins.exec builtins.eval builtins.compile builtins.__import__ importlib
        operator.methodcaller builtins.globals builtins.locals builtins.vars ctypes inspect gc""",
    "gives what differs between processes, as id and hash do": "builtins.id builtins.hash",
    "draws random numbers": """random secrets uuid os.urandom numpy.random cv2.randu cv2.randn cv2.randShuffle
        torch.rand torch.randn torch.randint torch.randperm torch.rand_like torch.randn_like torch.randint_like
        torch.normal torch.bernoulli torch.multinomial torch.poisson torch.random torch.manual_seed torch.seed
        torch.cuda.manual_seed torch.nn.functional.dropout torch.nn.modules.dropout tensorflow.random""",
    "changes a model": "torch.nn.modules.batchnorm torch.optim",
    "changes a setting of the library": """torch.set_num_threads torch.set_default_dtype torch.set_default_device
        cv2.setRNGSeed cv2.setNumThreads cv2.setUseOptimized cv2.ocl numpy.seterr numpy.seterrcall numpy.setbufsize
        numpy.set_printoptions pyarrow.set_cpu_count decimal.getcontext decimal.setcontext decimal.localcontext""",
    "reads the clock": """time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow
        datetime.date.today""",
    "asks what its process was started with": """os.environ os.environb os.getenv os.getenvb os.getcwd os.cpu_count
        posix.getcwd posix.cpu_count nt.getcwd nt.cpu_count""",
    "asks the operating system": "os posix nt sys platform signal resource atexit locale getpass tempfile",
    "shares something between threads": "threading _thread multiprocessing concurrent asyncio queue sched contextvars",
    "logs": "logging warnings traceback faulthandler",
    "changes files": """shutil subprocess sqlite3 numpy.save numpy.savez numpy.savez_compressed numpy.savetxt
        numpy.memmap numpy.lib.format.open_memmap cv2.imwrite cv2.imwritemulti cv2.VideoWriter pyarrow.fs
        penstock.io.storage penstock.io.tfrecord penstock.io.saved penstock.io.TFRecordWriter torch.save
        torch.serialization.save torchvision.utils.save_image torchvision.io.write_jpeg torchvision.io.write_png
        torchvision.io.write_file torchvision.io.write_video torchaudio.save tensorflow.io.write_file""",
    "uses the network": """torch.distributed torch.hub socket ssl http urllib.request ftplib smtplib requests httpx
        aiohttp""",
    "may hold an accelerator, which processes do not share": """torch torchvision torchaudio jax jaxlib tensorflow cupy
        mxnet paddle flax keras""",
}
_APART = {  # what another process has otherwise, though nobody in this one could see it
    "gives what differs between processes, as id and hash do",
    "asks what its process was started with",
    "may hold an accelerator, which processes do not share",
}
_DRAWING = words(  # classes of torchvision's and torchaudio's that draw, beside those whose name begins with Random
    """ColorJitter AutoAugment RandAugment TrivialAugmentWide AugMix ElasticTransform GaussianBlur GaussianNoise MixUp
    CutMix ScaleJitter JPEG"""
)
_RULES: dict[str, str | None] = {  # by dotted path, the longest that fits; None is harmless
    **dict.fromkeys(words(_HARMLESS)),
    **{path: why for why, paths in _VISIBLE.items() for path in words(paths)},
}
_INTERNAL = {  # where what is public of a module is defined
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
_CHANGED = {  # by the number of the argument
    0: """heapq.heappush heapq.heappop heapq.heapify heapq.heapreplace heapq.heappushpop bisect.insort
        bisect.insort_left bisect.insort_right operator.setitem operator.delitem operator.iadd operator.ior
        operator.iconcat operator.imul operator.isub builtins.setattr builtins.delattr builtins.next numpy.copyto
        numpy.put numpy.place numpy.putmask numpy.fill_diagonal numpy.put_along_axis cv2.rectangle cv2.line cv2.circle
        cv2.putText cv2.polylines cv2.fillPoly cv2.ellipse cv2.drawContours cv2.floodFill cv2.arrowedLine
        cv2.fillConvexPoly cv2.drawMarker""",
    1: "cv2.accumulate cv2.accumulateWeighted struct.pack_into numpy.fix numpy.isneginf numpy.isposinf",
    2: """numpy.all numpy.any numpy.amax numpy.amin numpy.max numpy.min numpy.ptp numpy.argmax numpy.argmin numpy.median
        numpy.around numpy.round numpy.dot numpy.outer numpy.choose numpy.concatenate numpy.stack numpy.nanmax
        numpy.nanmin numpy.nanargmax numpy.nanargmin numpy.nanmedian""",
    3: """numpy.clip numpy.sum numpy.prod numpy.mean numpy.std numpy.var numpy.cumsum numpy.cumprod numpy.take
        numpy.compress numpy.nansum numpy.nanprod numpy.nanmean numpy.nanstd numpy.nanvar numpy.nancumsum
        numpy.nancumprod numpy.percentile numpy.quantile numpy.nanpercentile numpy.nanquantile""",
    5: "numpy.trace",
}
_MUTATED = {path: place for place, paths in _CHANGED.items() for path in words(paths)}
_ALIASES = words(  # what they give may be, or hold, what they are given
    """builtins.getattr builtins.max builtins.min builtins.next copy.copy typing.cast operator.getitem
    dataclasses.replace numpy.asarray numpy.asanyarray numpy.ascontiguousarray numpy.asfortranarray numpy.reshape
    numpy.ravel numpy.squeeze numpy.transpose numpy.swapaxes numpy.moveaxis numpy.broadcast_to numpy.atleast_1d
    numpy.atleast_2d numpy.atleast_3d numpy.expand_dims numpy.flip numpy.fliplr numpy.flipud numpy.rot90 numpy.split
    numpy.array_split numpy.diagonal numpy.real numpy.imag numpy.nditer numpy.require numpy.array"""
)
_ALIASING_MODULES = ("itertools", "functools", "collections")
SEEDED = words(  # random numbers that follow from an argument
    """random.Random numpy.random.default_rng numpy.random.RandomState numpy.random.PCG64 numpy.random.Philox
    numpy.random.Generator numpy.random.SeedSequence numpy.random.MT19937 numpy.random.SFC64"""
)


def effect_of(path: str, *, alike: bool = True) -> str | None:
    """What a library's function, by its dotted path, does that could be noticed; None where none of it could be.

    With `alike`, also what is otherwise in another process, and noticed only there.
    """
    if not is_installed_path(path):  # the tables name libraries, and a module of the user's may bear the name of one
        return unknown(path)
    if path.startswith("penstock.") and path.endswith("Dataset") and not path.endswith(".Dataset"):
        # TFRecordDataset and all others of files: a pass reads them
        return None
    place = path
    while place:
        if place in _RULES:
            why = _RULES[place]
            if why in _APART and not alike:
                why = "draws random numbers" if _draws(path) else None
            if why is None or path.startswith("builtins."):
                return why
            return f"{why} (`{path}`)"
        place = place.rpartition(".")[0]
    return unknown(path)


def computes(path: str) -> bool:
    """Whether a library's function does nothing but compute, for certain, by its dotted path.

    >>> computes("json.loads"), computes("numpy.load"), computes("cv2.resize"), computes("cv2.imread")
    (True, False, True, False)
    """
    place = path
    while place:
        known = _COMPUTES.get(place)
        if known is not None:
            return known and is_installed_path(path)
        place = place.rpartition(".")[0]
    return False


_COMPUTES = {
    **dict.fromkeys(words(_COMPUTING), True),
    **{f"cv2.{name}": True for name in words(_COMPUTING_CV2)},
    **dict.fromkeys(words(_LOOKING), False),
    "numpy.lib.stride_tricks": True,
    "numpy.lib.array_utils": True,
}


@cache
def planning(dataset: type) -> frozenset[str]:
    """Methods of penstock's Dataset that read nothing, or list files at most: what they give is read later."""
    found = {"cardinality", "options"}
    for name in (name for name in dir(dataset) if name[0] != "_"):
        function = getattr(dataset, name)
        gives = str(function.__annotations__.get("return")) if isinstance(function, FunctionType) else ""
        if gives.startswith("Dataset") and name not in _READS and (name[:5] != "from_" or name in _LISTS):
            found.add(name)
    return frozenset(found)


def _draws(path: str) -> bool:
    """Whether a transformation of torchvision's or torchaudio's draws random numbers."""
    name = path.rpartition(".")[2]
    return path.startswith(("torchvision.", "torchaudio.")) and (name.startswith("Random") or name in _DRAWING)


def unknown(path: str) -> str:
    return f"uses `{path}`, of which is not known what it does"


def known(path: str) -> bool:
    """Whether anything is known of a module."""
    return path.partition(".")[0] in _ROOTS and is_installed_path(path)


_ROOTS = {path.partition(".")[0] for path in _RULES}


def mutated(path: str) -> int | None:
    """The number of the argument that a function changes."""
    return _MUTATED.get(path)


def aliases(path: str) -> bool:
    """Whether what it gives may be part of what it is given."""
    return path in _ALIASES or path.partition(".")[0] in _ALIASING_MODULES


def path_of(value: Any) -> str:
    """The dotted path of a library's function or class, as its users know it."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__name__
    place = getattr(value, "__module__", None) or ""
    name = str(name).removeprefix("_VariableFunctionsClass.")  # torch's
    if place.startswith("numpy.random."):  # in which of its modules a class stands
        place = "numpy.random"
    if not place and hasattr(builtins, name.partition(".")[0]):  # a method of a class of Python's
        place = "builtins"
    root, dot, rest = place.partition(".")
    return f"{_INTERNAL.get(root, root)}{dot}{rest}.{name}" if place else name


def known_place(function: Any, path: str | None) -> str | None:
    """The dotted path under which a library has this very function or class; None where another is found there.

    Somebody may have put it into the place of what the library has: what it is counts, and not what it is called.
    """
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    own = getattr(function, "__module__", None)
    if type(name) is not str or not (own is None or type(own) is str):
        return None
    for place in (own, path.rpartition(".")[0] if path else None, "builtins", "numpy", "cv2"):
        found: Any = sys.modules.get(place) if place else None
        for part in name.split(".") if found is not None else ():
            found = getattr(found, part, None)
        if found is function and function is not None:
            root, dot, rest = str(place).partition(".")
            return f"{_INTERNAL.get(root, root)}{dot}{rest}.{name}"
    return None
