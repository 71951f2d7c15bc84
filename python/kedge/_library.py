"""libkedge-client by ctypes: where it is found, and its functions as Python has them."""
import ctypes
import ctypes.util
import os
import sys
from pathlib import Path

ABI = 1
NAME = "libkedge-client.so"
DIMS_MAX = 8


class Error(Exception):
    """What the library refuses, in its words."""


def places():
    """Where the library may be, best first: what the owner says, the package itself, beside the programs, the system."""
    if "KEDGE_LIBRARY" in os.environ:
        yield os.environ["KEDGE_LIBRARY"]
        return
    yield Path(__file__).parent / NAME
    programs = [Path(os.environ[name]) for name in ("KEDGE_PROGRAMS",) if os.environ.get(name)]
    programs += [Path(folder) for folder in os.get_exec_path() if (Path(folder) / "kedge-client").exists()]
    for folder in programs:
        yield folder.resolve().parent / "lib" / NAME
        yield folder / NAME
    for name in (ctypes.util.find_library("kedge-client"), f"{NAME}.{ABI}", NAME):
        if name:
            yield name


def load():
    tried = []
    for place in places():
        try:
            return check(ctypes.CDLL(str(place)), place)
        except OSError as e:
            tried.append(str(e))
    raise ImportError(f"{NAME} is not found; set KEDGE_LIBRARY to its path. Looked at: {'; '.join(tried)}")


def check(lib, place):
    lib.kedge_lib_abi.restype = ctypes.c_uint32
    found = lib.kedge_lib_abi()
    if found != ABI:
        raise ImportError(f"{place}: its functions are version {found}, this package expects {ABI}; install both of one release")
    text, pointer, count = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32
    dims, floats = ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p
    for name, result, *arguments in (
            ("kedge_lib_version", text), ("kedge_lib_error", text),
            ("kedge_arrays_new", pointer), ("kedge_arrays_free", None, pointer),
            ("kedge_arrays_load", ctypes.c_int, text, ctypes.POINTER(pointer)),
            ("kedge_arrays_add", ctypes.c_int, pointer, text, dims, count, floats),
            ("kedge_arrays_save", ctypes.c_int, pointer, text),
            ("kedge_arrays_count", count, pointer), ("kedge_arrays_name", text, pointer, count),
            ("kedge_arrays_shape", count, pointer, count, dims), ("kedge_arrays_values", floats, pointer, count, dims),
            ("kedge_session_open", ctypes.c_int, ctypes.POINTER(pointer)), ("kedge_session_close", None, pointer),
            ("kedge_session_next", ctypes.c_int, pointer, ctypes.POINTER(pointer), ctypes.POINTER(ctypes.c_size_t)),
            ("kedge_session_reply", ctypes.c_int, pointer, text, ctypes.c_size_t)):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_loaded = None


def library():
    global _loaded
    _loaded = _loaded or load()
    return _loaded


def must(result):
    if result < 0:
        raise Error(library().kedge_lib_error().decode(errors="replace"))
    return result


class Tensor:
    """A tensor without NumPy: its shape, and its values as a flat memoryview of C floats."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), values

    def tolist(self):
        return self.values.tolist()


def load_tensors(path):
    """{name: Tensor} of a safetensors file of F32, in its order."""
    lib, arrays = library(), ctypes.c_void_p()
    must(lib.kedge_arrays_load(os.fsencode(path), ctypes.byref(arrays)))
    found = {}
    try:
        for i in range(lib.kedge_arrays_count(arrays)):
            dims, count = (ctypes.c_uint64 * DIMS_MAX)(), ctypes.c_uint64()
            shape = dims[:lib.kedge_arrays_shape(arrays, i, dims)]
            values = lib.kedge_arrays_values(arrays, i, ctypes.byref(count))
            copied = bytearray(ctypes.string_at(values, count.value * 4))  # as long as Python wants it
            found[lib.kedge_arrays_name(arrays, i).decode()] = Tensor(shape, memoryview(copied).cast("f"))
    finally:
        lib.kedge_arrays_free(arrays)
    return found


def flat(values):
    """(shape, address, owner) of a Tensor, a NumPy array, or anything with the buffer of C floats."""
    if isinstance(values, Tensor):
        shape, buffer = values.shape, memoryview(values.values)
    else:
        buffer = memoryview(values)
        shape = buffer.shape
    if buffer.format != "f" or not buffer.c_contiguous:
        raise TypeError(f"expected 32-bit floats one behind the other, found format {buffer.format!r}")
    if buffer.readonly or buffer.nbytes == 0:
        buffer = memoryview(bytearray(buffer.tobytes() or b"\0\0\0\0"))
    owner = (ctypes.c_char * max(buffer.nbytes, 1)).from_buffer(buffer)
    return shape, ctypes.addressof(owner), owner


def save_tensors(path, tensors):
    """Writes {name: tensor} as a canonical safetensors file, all or nothing. NaN and infinity are refused."""
    lib = library()
    arrays = lib.kedge_arrays_new()
    try:
        for name, values in tensors.items():
            shape, address, owner = flat(values)
            dims = (ctypes.c_uint64 * max(len(shape), 1))(*shape)
            must(lib.kedge_arrays_add(arrays, name.encode(), dims, len(shape), address))
            del owner
        must(lib.kedge_arrays_save(arrays, os.fsencode(path)))
    finally:
        lib.kedge_arrays_free(arrays)


class Session:
    """Requests of the site and replies to it, over standard input and output, which nothing else disturbs from now on."""

    def __init__(self):
        self.session = ctypes.c_void_p()
        must(library().kedge_session_open(ctypes.byref(self.session)))
        for stream in (sys.stdout, sys.stderr):  # into a pipe Python would keep 8 kB back, and lose them when it is killed
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(line_buffering=True)

    def __iter__(self):
        line, length = ctypes.c_void_p(), ctypes.c_size_t()
        while must(library().kedge_session_next(self.session, ctypes.byref(line), ctypes.byref(length))):
            yield ctypes.string_at(line.value, length.value)

    def reply(self, line):
        must(library().kedge_session_reply(self.session, line, len(line)))

    def close(self):
        library().kedge_session_close(self.session)
        self.session = ctypes.c_void_p()
