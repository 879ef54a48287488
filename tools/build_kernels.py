"""Compile the kernels of penstock into shared libraries before the release.

    python tools/build_kernels.py [--system darwin-arm64] [--into FOLDER] [--jobs N] [--checked]

Each module of kernels becomes one library for each level of processors, in `src/penstock/native/built/LEVEL/`. A
library contains a digest of its sources. The tool does not rebuild a library whose digest matches, so a second run
builds nothing.

A kernel is a Python function. Only this tool compiles it, with numba. The tool adds an entry that takes numpy arrays to
numba's LLVM code and emits an object file. The system's `cc` or the package ziglang links this file.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[1] / "src"
BUILT = SOURCES / "penstock" / "native" / "built"
PROCESSOR = "penstock.native.processor_native"  # decides which level the machine has, so it is loaded first
COMPILER = "0.68.1"  # version of numba: the build uses some of its private names
# The listed features are those that code needs by name. A level implies more.
LEVELS = {
    "x86-64-v4": "+avx2,+ssse3,+sse4.2,+popcnt,+bmi,+bmi2,+f16c,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    "x86-64-v3": "+avx2,+ssse3,+sse4.2,+popcnt,+bmi,+bmi2,+f16c",
    "x86-64-v2": "+ssse3,+sse4.2,+popcnt",
    "generic": "+neon,+crc",  # 64-bit ARM
}
CHECKED = "PENSTOCK_CHECKED_READS"  # a variable that `penstock.native.kernel` reads
# The systems of the libraries: LLVM's name, the name for ziglang's linker, the levels of the processors.
X86 = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
SYSTEMS = {
    "linux-x86_64": ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17", X86),
    "linux-aarch64": ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17", ["generic"]),
    "windows-amd64": ("x86_64-w64-windows-gnu", "x86_64-windows-gnu", X86),
    "darwin-arm64": ("arm64-apple-macosx11.0.0", "aarch64-macos.11.0", ["generic"]),
    "darwin-x86_64": ("x86_64-apple-macosx11.0.0", "x86_64-macos.11.0", X86),
}
HERE = f"{platform.system()}-{platform.machine()}".lower()
_TARGET = re.compile(r"^target (?:triple|datalayout) = .*\n", re.MULTILINE)
_USED = re.compile(r"""\bKernels\(["']([\w.]+)["']""")
_IMPORT = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)$", re.MULTILINE)


def modules_of_kernels() -> list[str]:
    """Return the modules with kernels that penstock loads, the largest first."""
    files = sorted((SOURCES / "penstock").rglob("*.py"))
    found = {name for file in files for name in _USED.findall(file.read_text("utf-8"))}
    return sorted(found, key=lambda name: (-sum(f.stat().st_size for f in source_files(name)), name))


def source_files(module: str) -> list[Path]:
    """Return the file of `module` and the penstock files that it imports, directly or indirectly, below `SOURCES`."""
    files: list[Path] = []
    waiting = [module]
    while waiting:
        place = SOURCES.joinpath(*waiting.pop(0).split("."))
        file = next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.exists()), None)
        if file is None or file in files:
            continue
        files.append(file)
        for source, names in _IMPORT.findall(file.read_text("utf-8")):
            if source.partition(".")[0] == "penstock":  # imported names may be modules themselves
                waiting += [source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))]
    return files


def level_here() -> str:
    """Return the best level that this machine supports in full."""
    import llvmlite.binding as llvm

    if sysconfig.get_platform().rpartition("-")[2] in ("aarch64", "arm64"):
        return "generic"
    has = llvm.get_host_cpu_features()
    needed = {level: [name.strip("+") for name in names.split(",")] for level, names in LEVELS.items()}
    return next(level for level in needed if all(has.get(name) for name in needed[level]))


def is_current(library: Path, module: str, system: str) -> bool:
    """Return True if a library was built from the present sources, by this compiler for this system."""
    wanted = described(module, system)
    return library.exists() and json.dumps(wanted).encode() in library.read_bytes()


def described(module: str, system: str) -> dict[str, Any]:
    """Return the description of the sources and the compiler that a library contains."""
    from penstock.native.library import FORMAT, digest_of

    files = source_files(module)
    names = [str(file.relative_to(SOURCES / "penstock")) for file in files]
    made_by = f"numba {COMPILER}, {system}, {'checked' if CHECKED in os.environ else 'plain'}"
    return {"format": FORMAT, "files": names, "digest": digest_of(files), "made_by": made_by}


def prepare(level: str) -> None:
    """Prepare this process for compiling for one level of processors. The process does nothing else."""
    arm = level == "generic"  # numba compiles for this machine's architecture; only the vector lengths remain to be set
    os.environ.update(
        NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="" if arm else LEVELS[level], PENSTOCK_FEATURES=LEVELS[level]
    )
    sys.path[:0] = [str(SOURCES), str(Path(__file__).parent)]
    gc.disable()  # numba does not release its objects anyway
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import llvmlite.binding as llvm
    import numba
    from lean import make_lean
    from numba.core import codegen, cpu, dispatcher

    if numba.__version__ != COMPILER:
        message = f"Kernels are built by numba {COMPILER}, this is {numba.__version__}: pip install numba=={COMPILER}"
        raise SystemExit(message)
    llvm.initialize_native_asmparser()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # emit LLVM's code only: no machine code for this process, and no functions that Python could call
    private: Any = (codegen.JITCPUCodegen, codegen.JITCodeLibrary, cpu.CPUContext, dispatcher.Dispatcher)
    whole, library, context, function = private
    make_lean()
    compile_one = function.compile
    whole._add_module = whole.set_env = lambda self, *_: None
    library._finalize_specific = lambda self: None
    # numba looks up a function by its callable, so each function gets a different one
    context.get_executable = lambda self, library, *_: library._ensure_finalized() or str(id(library)).format

    def compile_without_wrapper(self: Any, signature: Any) -> Any:
        self.targetoptions |= {"no_cpython_wrapper": True}
        return compile_one(self, signature)

    function.compile = compile_without_wrapper


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def build(module: str, level: str, library: Path, system: str) -> None:
    """Compile the kernels of one module for the level of this process."""
    import llvmlite.binding as llvm

    functions = kernels_of(importlib.import_module(module))
    triple, target, _ = SYSTEMS[system]
    options: Any = {"cpu": level, "features": LEVELS[level], "opt": 3, "reloc": "pic", "codemodel": "default"}
    machine = llvm.Target.from_triple(triple).create_target_machine(**options)
    entries = [Entry(name, function) for name, function in functions.items()]
    manifest = {"made": described(module, system), "functions": {each.name: each.described() for each in entries}}
    head = f'target triple = "{triple}"\ntarget datalayout = "{machine.target_data}"\n'
    linked = llvm.parse_assembly(head + RUNTIME)
    for each in entries:
        for text in each.compiled():
            linked.link_in(llvm.parse_assembly(f"{head}{_TARGET.sub('', text)}"))
    linked.link_in(llvm.parse_assembly(head + constants(json.dumps(manifest))))
    public = {
        "penstock_manifest",
        "penstock_checked_read",
        "penstock_array_type",
        "penstock_head",
        *(each.symbol for each in entries),
    }
    for each in (*linked.functions, *linked.global_variables):
        if not each.is_declaration and each.name not in public and not each.name.startswith("llvm."):
            each.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()  # removes the wrapper for CPython and all names of CPython
    passes.run(linked, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    allowed = {"malloc", "free", "memcpy", "memset", "memmove"}
    others = {f.name for f in linked.functions if f.is_declaration and not f.name.startswith("llvm.")} - allowed
    if others:
        message = f"The kernels of {module} need {', '.join(sorted(others))}, which penstock's libraries do not have."
        raise SystemExit(message)
    link(machine.emit_object(linked), library, None if system == HERE and shutil.which("cc") else target)


def kernels_of(module: Any) -> dict[str, Any]:
    """Return the kernels of a module by name."""
    return {name: each for name, each in vars(module).items() if hasattr(each, "declared")}


# The run-time functions that numba's arrays need. The data follows {references, destructor, its argument, data, size}.
RUNTIME = """
declare ptr @malloc(i64)
declare void @free(ptr)
define void @NRT_MemInfo_call_dtor(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %a = zext i32 %align to i64
  %room = add i64 %a, 40
  %all = add i64 %size, %room
  %over = icmp ult i64 %all, %size
  %asked = select i1 %over, i64 -1, i64 %all
  %memory = call ptr @malloc(i64 %asked)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %done, label %fine
fine:
  %number = ptrtoint ptr %memory to i64
  %end = add i64 %number, %room
  %last = sub i64 %end, 1
  %mask = sub i64 0, %a
  %data = and i64 %last, %mask
  store i64 1, ptr %memory
  %place = getelementptr i64, ptr %memory, i64 3
  store i64 %data, ptr %place
  br label %done
done:
  ret ptr %memory
}"""


def constants(manifest: str) -> str:
    """Return the constants of a library in LLVM's language."""
    text = "".join(f"\\{byte:02x}" for byte in manifest.encode())
    look = "@penstock_checked_read = global i64 0\n" if CHECKED in os.environ else ""
    return (
        f'{look}@penstock_manifest = constant [{len(manifest.encode()) + 1} x i8] c"{text}\\00"\n'
        "@penstock_array_type = global i64 0\n@penstock_head = global i64 0\n"
    )


class Entry:
    """The function of a library that calls a kernel: `int32_t NAME(PyObject **arrays, int64_t *numbers)`.

    `arrays` are numpy arrays with the layout of numpy's `PyArrayObject_fields` and `_PyArray_Descr` (numpy 2).
    `numbers` are one word each, floats as doubles. After them there is room for the results. The entry calls the first
    version that fits the arrays. It returns 0 for success, 1 if there is no memory, and 1000 + k if no version accepts
    array k.
    """

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.symbol = name, f"penstock_{name}"
        self._function, self._declared = function, function.declared

    def described(self) -> dict[str, Any]:
        """Return the description for the loader, for JSON."""
        versions, results, holds_gil = self._declared
        arguments = [
            [each.name, " or ".join(dict.fromkeys(version[i].kind for version in versions)), each.ndim, each.written]
            for i, each in enumerate(versions[0])
        ]
        return {"arguments": arguments, "results": results, "holds_gil": holds_gil}

    def compiled(self) -> list[str]:
        """Return the kernel's versions and this entry in LLVM's language."""
        from llvmlite import ir
        from numba.core import cgutils, registry

        texts, made = [], []
        for version in self._declared.versions:
            signature = tuple(argument.numba_type for argument in version)
            self._function.compile(signature)
            overload = self._function.overloads[signature]
            texts.append(overload.library.get_llvm_str())
            made.append((version, overload.fndesc))
        context = registry.cpu_target.target_context
        shell = context.create_module(f"{self.symbol}_shell")
        for name in ("penstock_array_type", "penstock_head"):
            ir.GlobalVariable(shell, ir.IntType(64), name)
        words = ir.IntType(64).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [words, words])
        entry = ir.Function(shell, kind, self.symbol)
        builder = ir.IRBuilder(entry.append_basic_block())
        worst = ir.Constant(ir.IntType(32), 0)
        for number, (version, described) in enumerate(made):
            arrays = [argument for argument in version if argument.ndim]
            failed = self._fits(shell, f"{self.symbol}_fits_{number}", arrays)
            bad = builder.call(failed, [entry.args[0]])
            with builder.if_then(builder.icmp_unsigned("==", bad, ir.Constant(ir.IntType(32), 0))):
                builder.ret(self._call(context, builder, version, described, *entry.args))
            worst = builder.select(builder.icmp_unsigned(">", bad, worst), bad, worst)
        builder.ret(builder.add(worst, ir.Constant(ir.IntType(32), 999)))
        return [*texts, cgutils.normalize_ir_text(str(shell))]

    def _fits(self, shell: Any, name: str, arrays: list[Any]) -> Any:
        """Write a function of the arrays that returns 0, or 1 + k if array k is not as declared."""
        from llvmlite import ir

        code, words = ir.IntType(32), ir.IntType(64).as_pointer()
        function = ir.Function(shell, ir.FunctionType(code, [words]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        for k, array in enumerate(arrays):
            read = Fields(builder, shell, function.args[0], k)
            differs = function.append_basic_block()
            for fine in read.checks(array):
                following = function.append_basic_block()
                builder.cbranch(fine(), following, differs)
                builder.position_at_end(following)
            ir.IRBuilder(differs).ret(ir.Constant(code, 1 + k))
        builder.ret(ir.Constant(code, 0))
        return function

    def _call(self, context: Any, builder: Any, version: list[Any], described: Any, arrays: Any, numbers: Any) -> Any:
        """Call one version, store its results after the numbers, and return the status."""
        from llvmlite import ir
        from numba.core import types
        from numba.np import arrayobj

        word, code = ir.IntType(64), ir.IntType(32)
        places, taken = (iter(range(len(version))), iter(range(len(version) + len(self._declared.results))))

        def place() -> Any:
            return builder.gep(numbers, [word(next(taken))])

        def argument(wanted: Any, kind: Any) -> Any:
            if not wanted.ndim:
                value = builder.load(place())
                if wanted.kind == "bool":
                    return builder.icmp_unsigned("!=", value, word(0))
                if wanted.kind[0] != "f":
                    return builder.trunc(value, context.get_value_type(kind)) if kind.bitwidth < 64 else value
                double = builder.bitcast(value, ir.DoubleType())
                return builder.fptrunc(double, ir.FloatType()) if kind.bitwidth < 64 else double
            read = Fields(builder, builder.module, arrays, next(places))
            array = arrayobj.make_array(kind)(context, builder)
            shape, strides = read.shape(wanted.ndim), []
            step = item = word(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
            for length in reversed(shape):
                strides.insert(0, step)
                step = builder.mul(step, length)
            data = builder.inttoptr(read.word(0), array.data.type)
            arrayobj.populate_array(array, data, shape, strides, item, None)
            return array._getvalue()

        given = [argument(*both) for both in zip(version, described.argtypes, strict=True)]
        convention, restype = context.call_conv, described.restype
        callee = next((f for f in builder.module.functions if f.name == described.llvm_func_name), None)
        callee = callee or ir.Function(
            builder.module, convention.get_function_type(restype, described.argtypes), described.llvm_func_name
        )
        status, value = convention.call_function(builder, callee, restype, described.argtypes, given)
        parts = restype if isinstance(restype, types.BaseTuple) else () if restype is types.none else (restype,)
        found = [builder.extract_value(value, i) for i in range(len(parts))] if len(parts) > 1 else [value] * len(parts)
        if len(found) != len(self._declared.results):
            message = f"{self.name} returns {restype}, but declares {self._declared.results}."
            raise SystemExit(message)
        for result, kind in zip(found, parts, strict=True):
            if isinstance(kind, types.Float):
                result = builder.bitcast(builder.fpext(result, ir.DoubleType()) if kind.bitwidth < 64 else result, word)
            elif isinstance(kind, types.Boolean):
                result = builder.zext(result, word)
            elif kind.bitwidth < 64:
                result = (builder.sext if kind.signed else builder.zext)(result, word)
            builder.store(result, place())
        return builder.select(status.is_error, code(1), code(0))


class Fields:
    """Reads the fields of array k of `arrays` in compiled code."""

    # offsets of PyArrayObject_fields after the object's head, and of numpy 2's _PyArray_Descr after its own head
    NDIM, SHAPE, DESCR, FLAGS = 8, 16, 40, 48
    KIND, ORDER, SIZE = 8, 10, 24
    CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # NPY_ARRAY_*

    def __init__(self, builder: Any, module: Any, arrays: Any, k: int) -> None:
        from llvmlite import ir

        self._b, self._ir, self._module = builder, ir, module
        self._object = builder.load(builder.gep(arrays, [ir.IntType(64)(k)]))
        self._head = builder.load(module.get_global("penstock_head"))

    def _load(self, base: Any, offset: int, bits: int) -> Any:
        kind = self._ir.IntType(bits)
        address = self._b.add(base, self._b.add(self._head, self._ir.IntType(64)(offset)))
        return self._b.load(self._b.inttoptr(address, kind.as_pointer()))

    def word(self, offset: int) -> Any:
        """Read a field of 64 bits."""
        return self._load(self._object, offset, 64)

    def shape(self, ndim: int) -> list[Any]:
        """Read the lengths of the axes."""
        at, word = self.word(self.SHAPE), self._ir.IntType(64)
        return [self._b.load(self._b.inttoptr(self._b.add(at, word(8 * i)), word.as_pointer())) for i in range(ndim)]

    def checks(self, wanted: Any) -> Any:
        """Yield functions that write one check each, in the order of the checks."""
        b, ir = self._b, self._ir
        kind, size = (wanted.kind[0], 1 if wanted.kind == "bool" else int(wanted.kind[1:]) // 8)
        flags = self.CONTIGUOUS | self.ALIGNED | (self.WRITEABLE if wanted.written else 0)

        def is_one_of(value: Any, *these: int) -> Any:
            found = ir.Constant(ir.IntType(1), 0)
            for each in these:
                found = b.or_(found, b.icmp_unsigned("==", value, ir.Constant(value.type, each)))
            return found

        yield lambda: b.icmp_unsigned(
            "==", self._load(self._object, -8, 64), b.load(self._module.get_global("penstock_array_type"))
        )
        yield lambda: is_one_of(self._load(self._object, self.NDIM, 32), wanted.ndim)
        yield lambda: is_one_of(b.and_(self._load(self._object, self.FLAGS, 32), ir.IntType(32)(flags)), flags)
        descr = self.word(self.DESCR)
        yield lambda: is_one_of(self._load(descr, self.KIND, 8), ord(kind))
        yield lambda: is_one_of(self._load(descr, self.ORDER, 8), ord("="), ord("|"))
        yield lambda: is_one_of(self._load(descr, self.SIZE, 64), size)


def link(machine_code: bytes, library: Path, target: str | None) -> None:
    """Link an object file to a shared library, and put the library in place in one step.

    The linker is this system's `cc`, or ziglang's for a `target`.
    """
    with tempfile.TemporaryDirectory() as folder:
        made, objects = Path(folder, "made"), Path(folder, "kernels.o")
        objects.write_bytes(machine_code)
        linker = ["cc"] if target is None else [sys.executable, "-m", "ziglang", "cc", "-target", target]
        subprocess.run([*linker, "-shared", "-s", "-o", made, objects], check=True, stdout=subprocess.DEVNULL)
        library.parent.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_name(f"{library.name}.{os.getpid()}")
        shutil.copyfile(made, unfinished)
        unfinished.replace(library)


def main() -> None:
    """Build missing and stale libraries, and print the progress."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--system", choices=SYSTEMS, help="build for all processors of this system; default: for this machine"
    )
    parser.add_argument("--into", type=Path, default=BUILT)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) if sys.platform == "linux" else None)
    parser.add_argument("--checked", action="store_true", help="build with checks of bounds and of reads at addresses")
    parser.add_argument("--modules", nargs="+", help="build only these modules")
    chosen = parser.parse_args()
    sys.path.insert(0, str(SOURCES))
    if chosen.checked:
        os.environ |= {CHECKED: "1", "NUMBA_BOUNDSCHECK": "1"}
    system, levels = (chosen.system or HERE, SYSTEMS[chosen.system][2] if chosen.system else [level_here()])
    wanted = [(name, level) for level in levels for name in chosen.modules or modules_of_kernels()]
    wanted.append((PROCESSOR, "generic" if "generic" in levels else "x86-64-v2"))
    places = [(name, level, chosen.into / level / f"{name}.so") for name, level in wanted]
    stale = [each for each in places if not is_current(each[2], each[0], system)]
    count = 0
    for level in dict.fromkeys(level for _, level, _ in stale):
        with ProcessPoolExecutor(chosen.jobs, get_context("spawn"), initializer=prepare, initargs=(level,)) as pool:
            for done in as_completed([pool.submit(build, *each, system) for each in stale if each[1] == level]):
                done.result()
                count += 1
                print(f"\rbuilding kernels, once: {count} of {len(stale)}", end="", flush=True)
    if stale:
        print()


if __name__ == "__main__":
    main()
