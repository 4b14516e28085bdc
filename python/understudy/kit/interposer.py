"""A library that stands in front of the vendors' libraries (LD_PRELOAD), passes each call on, and notes it.

Its C source is made from the bindings, so it knows every function. It knows nothing of who provides them: it also
stands in front of a vendor's own libraries. Host arrays and new handles are noted, so that a call can be repeated; of the FT
functions all that may decide whether a call is legal: integers, tables of pointers and structures.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

from understudy import paths, toolchain
from understudy.errors import UsageError
from understudy.kit import sdk
from understudy.kit.prototypes import SCALING_FACTORS, Parameter, Prototype, is_half, prototypes
from understudy.paths import STACKS

# Array parameters and the parameter that counts them; a number is a fixed count of elements.
ARRAY_COUNTS = {
    "viewDims": "viewDimsNum", "stride": "viewDimsNum", "storageDims": "storageDimsNum", "value": "size",
    "dimA": "nbDims", "strideA": "nbDims", "filterDimA": "nbDims", "windowDimA": "nbDims", "paddingA": "nbDims",
    "padBeforeA": "nbDims", "padAfterA": "nbDims", "foldA": "nbDims",
}  # fmt: skip
UNLOADABLE = re.compile(r"[\s:]")  # what separates names in LD_PRELOAD
# 16 bytes hold a scalar of any type.
SCALAR_BYTES = 16
# Tables of pointers of the FT functions, and how many entries a call reads, by the names of its parameters.
TABLE_COUNTS = {
    "inputs": "{num_inputs}", "input_shapes": "{num_inputs}", "outputs": "{num_split}", "split_data": "{num_split}",
    "tensor_data": "{tensor_num}", "handle_data": "{index} + 1LL", "input_tensors": "{index} + 1LL",
    "output_tensors": "first_integer({input_tensor_shape})",
}  # fmt: skip
# Of include/understudy: what tells of a refusal where a function returns nothing.
REPORTERS = ("understudy_last_status", "understudy_last_rule", "understudy_last_error", "understudy_clear_last_error")
FT_INTEGERS = {"int", "int32_t", "long long"}  # shapes, indices, labels; what is computed with has other types
# Those with as many numbers as the operands have rows or elements; the others have one for an axis or a part.
LONG_ARRAYS = {"indices", "index", "ids", "labels", "indices_ptr", "in_indices_ptr", "indices_vec", "box_idx", "feature", "splits"}

INCLUDES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

"""

PRELUDE = r"""
typedef struct Line { char text[32768]; int used; } Line;

/* A program that has closed a standard stream would print into a file with its number. */
static int above_streams(int made)
{
    if (made < 0 || made > STDERR_FILENO) {
        return made;
    }
    int moved = fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(made);
    return moved;
}

/* The file of the libraries' own events: lines of an array that nobody closes. */
static int trace_file(void)
{
    static int file = -2;
    const char *path = getenv("UNDERSTUDY_TRACE");
    if (file == -2 && path != NULL) {
        int made = above_streams(open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
        file = made >= 0 ? made : above_streams(open(path, O_WRONLY | O_APPEND | O_CLOEXEC));
        if (made >= 0 && write(made, "[\n", 2) != 2) {
            file = -1;
        }
    }
    return file < 0 ? -1 : file;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void add(Line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int room = (int)sizeof line->text - line->used;
    int length = vsnprintf(line->text + line->used, (size_t)room, format, arguments);
    va_end(arguments);
    line->used += length < room ? length : room - 1;
}

/* Bytes of our own memory, whether or not they are mapped. */
static size_t peek(const void *address, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

static void add_bytes(Line *line, const char *name, const void *address, uint64_t count, size_t element)
{
    unsigned char bytes[1024];
    uint64_t size = count < sizeof bytes / element ? count * element : 0;
    size_t got = address == NULL || size == 0 ? 0 : peek(address, bytes, (size_t)size);
    if (got > 0) {
        add(line, ",\"%s[]\":\"", name);
        for (size_t i = 0; i < got; i++) {
            add(line, "%02x", bytes[i]);
        }
        add(line, "\"");
    }
}

enum { NOTED_BYTES = 1024, NOTED_SHORT = 256, NOTED_ENTRIES = 64, LINE_END = 512 };

/* What the memory at an address has, up to a limit: how long the array is that begins there only the function knows. */
static void add_memory(Line *line, const void *address, size_t size)
{
    unsigned char bytes[NOTED_BYTES];
    const size_t got = address == NULL ? 0 : peek(address, bytes, size < sizeof bytes ? size : sizeof bytes);
    if (got > 0 && (size_t)line->used + 2 * got + LINE_END < sizeof line->text) {
        add(line, ",\"%#llx[]\":\"", (unsigned long long)(uintptr_t)address);
        for (size_t i = 0; i < got; i++) {
            add(line, "%02x", bytes[i]);
        }
        add(line, "\"");
    }
}

/* A pointer in memory: a word of a table, or a member of a structure. */
static void *add_pointer(Line *line, const void *place)
{
    void *value = NULL;
    if (peek(place, &value, sizeof value) == sizeof value && (size_t)line->used + LINE_END < sizeof line->text) {
        add(line, ",\"*%#llx\":\"%#llx\"", (unsigned long long)(uintptr_t)place, (unsigned long long)(uintptr_t)value);
    }
    return value;
}

static int64_t first_integer(const void *address)
{
    int value = 0;
    return address != NULL && peek(address, &value, sizeof value) == sizeof value ? value : 0;
}

static void add_given(Line *line, const char *name, const void *address)
{
    void *value = NULL;
    if (address != NULL && peek(address, &value, sizeof value) == sizeof value) {
        add(line, ",\"*%s\":\"%#llx\"", name, (unsigned long long)(uintptr_t)value);
    }
}

/* RTLD_NEXT goes by the caller's address, so what passes it on must be a jump, which plain compilation makes a call. */
#define PASSES_ON __attribute__((optimize("O2")))

/* dlsym as libc has it: ours below hides it. */
PASSES_ON static void *find(void *library, const char *name)
{
    static void *(*real)(void *, const char *);
    if (real == NULL) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        *(void **)&real = found != NULL ? found : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    }
    return real(library, name);
}

/* The function behind ours; NULL: there is none. A program that opened a library for itself alone has it outside the common
 * scope. */
static void *look_behind(const char *name)
{
    void *function = find(RTLD_NEXT, name);
    for (size_t i = 0; function == NULL && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        function = library != NULL ? find(library, name) : NULL;
    }
    return function;
}

static void *next(const char *name)
{
    void *function = look_behind(name);
    if (function == NULL) {
        fprintf(stderr, "understudy trace: no library of the program has %s\n", name);
        abort();
    }
    return function;
}

/* Programs that look at LD_PRELOAD would go other ways than without us; what they start still gets it. */
char *getenv(const char *name)
{
    static char *(*real)(const char *);
    if (real == NULL) {
        *(void **)&real = find(RTLD_NEXT, "getenv");
    }
    return name != NULL && strcmp(name, "LD_PRELOAD") == 0 ? NULL : real(name);
}

/* A function that returns nothing tells of a refusal by understudy_last_status(), where the library has that. Each such call
 * begins without one, so that its own is seen; what the program may still ask for is kept here. */
typedef struct Refusal { int32_t status; char rule[512], error[2048]; } Refusal;

static _Thread_local Refusal earlier;

static void *reporter(const char *name)
{
    static void *status;
    if (status == NULL) {
        status = look_behind("understudy_last_status");
    }
    return status == NULL || strcmp(name, "understudy_last_status") == 0 ? status : look_behind(name);
}

static int32_t status_behind(void)
{
    int32_t (*status)(void) = (int32_t (*)(void))reporter("understudy_last_status");
    return status != NULL ? status() : 0;
}

static const char *text_behind(const char *name)
{
    const char *(*text)(void) = (const char *(*)(void))reporter(name);
    return text != NULL ? text() : "";
}

static void clear_behind(void)
{
    void (*clear)(void) = (void (*)(void))reporter("understudy_clear_last_error");
    if (clear != NULL) {
        clear();
    }
}

static void begin_without_refusal(void)
{
    const int32_t status = status_behind();
    if (status != 0) {
        earlier.status = status;
        snprintf(earlier.rule, sizeof earlier.rule, "%s", text_behind("understudy_last_rule"));
        snprintf(earlier.error, sizeof earlier.error, "%s", text_behind("understudy_last_error"));
        clear_behind();
    }
}

static void add_refusal(Line *line)
{
    if (reporter("understudy_last_status") != NULL) {
        add(line, "\"last_status\":%d", status_behind());
    }
}

int32_t understudy_last_status(void)
{
    const int32_t status = status_behind();
    return status != 0 ? status : earlier.status;
}

const char *understudy_last_rule(void)
{
    return status_behind() != 0 ? text_behind("understudy_last_rule") : earlier.rule;
}

const char *understudy_last_error(void)
{
    return status_behind() != 0 ? text_behind("understudy_last_error") : earlier.error;
}

void understudy_clear_last_error(void)
{
    clear_behind();
    earlier = (Refusal){.status = 0};
}

static void finish(Line *line, double start, double end)
{
    add(line, "},\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d},\n", start, end - start, (int)getpid(), (int)gettid());
    static int failed;
    ssize_t written = failed ? line->used : write(trace_file(), line->text, (size_t)line->used);
    if (written != line->used) {
        failed = 1;
        fprintf(stderr, "understudy trace: a call cannot be written: %s\n", written < 0 ? strerror(errno) : "no room");
    }
}
"""


class Spelling:
    """C types of the same size and passing class as the vendor's, without the vendor's names."""

    def __init__(self):
        self.structures: dict[str, str] = {}

    def type_of(self, kind, stack: str) -> str:
        if kind.kind == "void":
            return "void"
        if kind.kind in ("pointer", "array", "function"):
            return "void *"
        if kind.kind == "enum":
            return "int"
        if kind.kind in ("struct", "union"):
            return self._structure(kind, stack)
        if kind.cname in ("float", "double", "_Bool", "bool"):
            return "_Bool" if kind.cname == "bool" else kind.cname
        if is_half(kind, stack):
            return "_Float16"
        return {"size_t": "size_t"}.get(kind.cname, kind.cname)

    def _structure(self, kind, stack: str) -> str:
        name = "by_value_" + "".join(c if c.isalnum() else "_" for c in kind.cname)
        if name not in self.structures:
            fields = " ".join(f"{self.type_of(field.type, stack)} f{index};"
                              for index, (_, field) in enumerate(kind.fields))  # fmt: skip
            self.structures[name] = f"typedef {kind.kind} {name} {{ {fields} }} {name};"
        return name


def _note(parameter: Parameter, index: int, names: list[str], spelling: str) -> list[str]:
    """C statements that put one argument into the line, before the call."""
    value, name = f"a{index}", parameter.name
    comma = "," if index else ""
    if parameter.is_pointer:
        lines = [f'add(&line, "{comma}\\"{name}\\":\\"%#llx\\"", (unsigned long long)(uintptr_t){value});']
        if name in SCALING_FACTORS and "const" in parameter.text:
            lines.append(f'add_bytes(&line, "{name}", {value}, {SCALAR_BYTES}, 1);')
        elif ARRAY_COUNTS.get(name) in names and parameter.kind.kind != "function":
            count = f"a{names.index(ARRAY_COUNTS[name])}"
            element = parameter.kind.item
            size = 8 if element.kind == "pointer" else _size_of(element)
            lines.append(f'add_bytes(&line, "{name}", {value}, {count} > 0 ? (uint64_t){count} : 0, {size});')
        elif name == "value" and "dataType" in names:
            lines.append(f'add_bytes(&line, "{name}", {value}, {SCALAR_BYTES}, 1);')
        return lines
    if spelling in ("float", "double", "_Float16"):
        return [f'add(&line, "{comma}\\"{name}\\":\\"%a\\"", (double){value});']
    if spelling.startswith("by_value_"):
        return [f'add(&line, "{comma}\\"{name}\\":\\"structure\\"");']
    unsigned = spelling in ("size_t", "uint64_t", "unsigned long", "unsigned long long")
    form, cast = ("%llu", "unsigned long long") if unsigned else ("%lld", "long long")
    return [f'add(&line, "{comma}\\"{name}\\":{form}", ({cast}){value});']


def _size_of(kind) -> int:
    import cffi

    return 1 if kind.kind == "void" else cffi.FFI().sizeof(kind.cname)


def _contents(kind, place: str, count: str, size: str = "NOTED_SHORT", depth: int = 0) -> list[str]:
    """C statements that note what is at an address, by the type of what lies there: integers, a structure, or a table with
    a count of pointers to more. Arrays that are computed with are left out."""
    if kind.kind == "primitive" and kind.cname in FT_INTEGERS:
        return [f"add_memory(&line, {place}, {size});"]
    if kind.kind == "struct":
        members = [line for _, field in kind.fields if field.type.kind == "pointer"
                   for line in _pointer(field.type.item, f"(char *){place} + {field.offset}", depth)]  # fmt: skip
        return [f"if ({place} != NULL) {{", f"add_memory(&line, {place}, {_size_of_structure(kind)});", *members, "}"]
    if kind.kind == "pointer" and count:
        return [f"for (int64_t i = 0; {place} != NULL && i < {count} && i < NOTED_ENTRIES; i++) {{",
                *_pointer(kind.item, f"(void **){place} + i", depth), "}"]  # fmt: skip
    return []


def _pointer(kind, place: str, depth: int) -> list[str]:
    """The same of a pointer in memory, and of what it leads to."""
    at = f"at{depth}"
    return ["{", f"void *{at} = add_pointer(&line, {place});", *_contents(kind, at, "", depth=depth + 1), "}"]


def _size_of_structure(kind) -> int:
    """Up to the end of its last member: the fill bytes behind it do not matter."""
    return max(field.offset + (8 if field.type.kind == "pointer" else _size_of(field.type)) for _, field in kind.fields)


def _ft_contents(prototype: Prototype) -> list[str]:
    names = {parameter.name: f"a{index}" for index, parameter in enumerate(prototype.parameters)}
    return [line for parameter in prototype.parameters if parameter.kind.kind == "pointer"
            for line in _contents(parameter.kind.item, names[parameter.name],
                                  TABLE_COUNTS.get(parameter.name, "").format_map(names),
                                  "NOTED_BYTES" if parameter.name in LONG_ARRAYS else "NOTED_SHORT")]  # fmt: skip


def wrapper(prototype: Prototype, spelling: Spelling) -> str:
    types = [spelling.type_of(parameter.kind, prototype.stack) for parameter in prototype.parameters]
    result = spelling.type_of(prototype.result, prototype.stack)
    names = [parameter.name for parameter in prototype.parameters]
    declared = ", ".join(f"{kind} a{index}" for index, kind in enumerate(types)) or "void"
    passed = ", ".join(f"a{index}" for index in range(len(types)))
    notes = [line for index, parameter in enumerate(prototype.parameters)
             for line in _note(parameter, index, names, types[index])]  # fmt: skip
    is_ft = prototype.stack == "ftdsp"
    if is_ft:
        notes += _ft_contents(prototype)
    gives = [f'add_given(&line, "{parameter.name}", a{index});'
             for index, parameter in enumerate(prototype.parameters) if parameter.gives_handle]  # fmt: skip
    if result == "void":
        call, returned, leave = f"real({passed});", ['add(&line, "},\\"result\\":{");'], "return;"
        if is_ft:
            call, returned = f"begin_without_refusal(); {call}", [*returned, "add_refusal(&line);"]
    else:
        call, leave = f"{result} status = real({passed});", "return status;"
        form = ('\\"%#llx\\"", (unsigned long long)(uintptr_t)status' if result == "void *" else
                '\\"%a\\"", (double)status' if result in ("float", "double") else
                '%lld", (long long)status')  # fmt: skip
        returned = ['add(&line, "},\\"result\\":{\\"status\\":' + form + ");"]
    pointer = f"{result} (*)({', '.join(types) or 'void'})"
    body = [f"if (real_{prototype.name} == NULL) {{", f'    real_{prototype.name} = next("{prototype.name}");', "}",
            f"{pointer.replace('(*)', '(*real)', 1)} = ({pointer})real_{prototype.name};",
            'Line line = {.used = 0};',
            f'add(&line, "{{\\"ph\\":\\"X\\",\\"cat\\":\\"call\\",\\"name\\":\\"{prototype.name}\\",\\"args\\":{{");',
            *notes, "double start = now();", call, "double end = now();", *gives, *returned,
            "finish(&line, start, end);", leave]  # fmt: skip
    return "\n".join([f"static void *real_{prototype.name};", "", f"{result} {prototype.name}({declared})", "{",
                      *(f"    {line}" for line in body), "}"])  # fmt: skip


# What a program finds with dlsym in a library that it opened is one of ours as well.
LOOK_UP = r"""
static int compare_names(const void *name, const void *entry)
{
    return strcmp(name, ((const Wrapper *)entry)->name);
}

PASSES_ON void *dlsym(void *library, const char *name)
{
    if (library == RTLD_NEXT || library == RTLD_DEFAULT || name == NULL) {
        return find(library, name);
    }
    const Wrapper *wrapper = bsearch(name, wrappers, sizeof wrappers / sizeof *wrappers, sizeof *wrappers, compare_names);
    void *function = find(library, name);
    if (wrapper == NULL || function == NULL) {
        return function;
    }
    if (*wrapper->real == NULL) {
        *wrapper->real = function;
    }
    return wrapper->wrapper;
}
"""


def source() -> str:
    spelling = Spelling()
    wrappers = [wrapper(prototype, spelling) for prototype in prototypes().values()]
    names = ", ".join(f'"{name}"' for name in sdk.library_files())
    table = ",\n".join(f'    {{"{name}", (void *){name}, &real_{name}}}' for name in sorted([*prototypes(), *REPORTERS]))
    return "\n\n".join([INCLUDES, f"static const char *const libraries[] = {{{names}}};", PRELUDE,
                        *(f"static void *real_{name};" for name in REPORTERS), *spelling.structures.values(), *wrappers,
                        "typedef struct Wrapper { const char *name; void *wrapper; void **real; } Wrapper;",
                        f"static const Wrapper wrappers[] = {{\n{table}\n}};", LOOK_UP]) + "\n"  # fmt: skip


def fingerprint() -> str:
    """Of all that the source is made from: to make it takes many times as long."""
    package = pathlib.Path(__file__).parents[1]
    made_by = [package / "kit" / f"{name}.py" for name in ("interposer", "prototypes", "surface")]
    bindings = [paths.part(f"_{stack}_cffi.py") for stack in STACKS]
    headers = [file for stack in STACKS.values() for file in sorted((stack.root / "include").rglob("*.h"))]
    digest = hashlib.sha256(" ".join(sdk.library_files()).encode())
    for file in [*made_by, *bindings, *headers]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def build(folder: pathlib.Path) -> pathlib.Path:
    """The compiled library. Kept between runs where the user's caches are, else made in the folder, whose name LD_PRELOAD
    can hold."""
    kept = toolchain.cache_folder()
    if kept is None:
        return _compile(source(), folder)
    library = kept / f"libunderstudy-calls-{fingerprint()}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=kept, prefix="interposer-") as name:
            os.replace(_compile(source(), pathlib.Path(name)), library)
    if not UNLOADABLE.search(str(library)):
        return library
    link = folder / "interposer.so"
    link.symlink_to(library)
    return link


def _compile(text: str, folder: pathlib.Path) -> pathlib.Path:
    file, library = folder / "interposer.c", folder / "libunderstudy-calls.so"
    file.write_text(text, "utf-8")
    command = [*toolchain.compiler("c"), "-w", "-O0", "-shared", "-fPIC", str(file), "-o", str(library), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UsageError(f"the compiler refuses the tracing library: {done.stderr.splitlines()[0]}")
    return library
