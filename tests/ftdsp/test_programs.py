"""Programs with literal addresses, linked in every way, and what happens when a window is not free."""

import pathlib
import re

import pytest

from tests import native
from tests.conformance.ftdsp import manual
from tests.function_table import complete_functions
from understudy import paths
from understudy.ftdsp import ffi, lib

SDK = paths.STACKS["ftdsp"]
EXAMPLES = native.ROOT / "examples_c" / "ftdsp"
COMPILERS = {"gcc": ["gcc", "-std=c11"], "g++": ["g++", "-std=c++11", "-x", "c++"]}
LINKS = {
    "pie": ["-fPIE", "-pie", f"-Wl,-rpath,{SDK.library_path}"],
    "no-pie": ["-fno-pie", "-no-pie", f"-Wl,-rpath,{SDK.library_path}"],
    "static-pie": ["-static-pie"],
}

EXPECTED = {  # ft-dsp 7: mean with weight; none without
    "shared_space": [0.370370370366, -2.66666666665, 0, -0.666666666663, 3.3333333333, -1.001001],
    "private_space": [1.1111111111, -3.99999999998, 0, -0.666666666663, 9.99999999989, -1.001001],
}


def build(source: pathlib.Path, compiler: str, link: str, extra=()) -> pathlib.Path:
    program = native.work_folder() / f"{source.stem}-{compiler}-{link}"
    native.check([*COMPILERS[compiler], *native.STRICT, "-O1", *extra, source, "-x", "none",
                  *(f"-I{path}" for path in SDK.include_paths), *LINKS[link], "-o", program,
                  f"-L{SDK.library_path}", "-lftdsp", *(["-lm", "-pthread"] if link == "static-pie" else [])])
    return program


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_examples(compiler, link, name):
    printed = native.check([build(EXAMPLES / "binarycrossentropygrad" / f"{name}.c", compiler, link)])
    numbers = [float(number) for number in re.findall(r"= (\S+)", printed)]
    assert numbers == pytest.approx(EXPECTED[name], rel=1e-6, abs=5e-7)  # six decimals are printed


@pytest.mark.parametrize("name", EXPECTED)
def test_the_compile_command_in_the_first_line_works(name, tmp_path):
    source = EXAMPLES / "binarycrossentropygrad" / f"{name}.c"
    command = source.read_text().splitlines()[0].removeprefix("/* ")
    native.check(["sh", "-ec", f"cd {tmp_path}; cp {source} .; {command}; ./{name}"],
                 {"FTDSP_PATH": str(SDK.root)})


def test_the_cmake_project_builds(tmp_path):
    home = {"FTDSP_PATH": str(SDK.root)}
    native.check(["cmake", "-S", EXAMPLES / "binarycrossentropygrad", "-B", tmp_path, "-DCMAKE_BUILD_TYPE=Release"],
                 home)
    native.check(["cmake", "--build", tmp_path], home)
    for name in EXPECTED:
        native.check([tmp_path / name])


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
@pytest.mark.parametrize("name", EXPECTED)
def test_examples_under_sanitizers(name, sanitizer):
    program = native.build_vendor(EXAMPLES / "binarycrossentropygrad" / f"{name}.c", "ftdsp", sanitizer)
    done = native.run([program])
    assert done.returncode == 0 and done.stderr == "", done
    numbers = [float(number) for number in re.findall(r"= (\S+)", done.stdout)]
    assert numbers == pytest.approx(EXPECTED[name], rel=1e-6, abs=5e-7)


WINDOWS = r"""
#include <binarycrossentropygrad.h>
#include <stdio.h>

static void touch(unsigned long long first, unsigned long long last)
{
    volatile int *ends[2] = {(volatile int *)first, (volatile int *)(last - 3)};
    for (int i = 0; i < 2; i++) {
        if (*ends[i] != 0) {
            printf("not zero: %p\n", (void *)ends[i]);
        }
        *ends[i] = 1;
    }
    printf("%llx ok\n", first);
}

int main(void)
{
    touch(0x0C000000, 0x0C3FFFFF);
    touch(0x10000000, 0x1FFFFFFF);
    touch(0x80000000, 0xFFFFFFFF);
    touch(0xD00000000, 0xDFFFFFFFF);
    fp_binarycrossentropygrad_s(0, 0, 0, 0, 0, 0, 0, 0, 1);
    return 0;
}
"""


@pytest.fixture(scope="module")
def windows_source():
    source = native.work_folder() / "windows.c"
    source.write_text(WINDOWS)
    return source


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_windows_exist_before_main_and_hold_zero(windows_source, compiler, link):
    program = build(windows_source, compiler, link)
    for _ in range(5):  # addresses are randomised
        assert native.check([program]).split() == ["c000000", "ok", "10000000", "ok", "80000000", "ok", "d00000000",
                                                   "ok"]


TOUCH = r"""
#include <add.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    float *there = (float *)(uintptr_t)strtoull(arguments[1], NULL, 16);
    if (count > 2) {
        fp_add_s(there, there, there, 4, 1);
    }
    *(volatile float *)there += 1;
    printf("%g\n", *there);
    return 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["", "address"])
@pytest.mark.parametrize("caller", ["the program", "an operator"])
def test_an_address_outside_the_memory_says_so(sanitizer, caller, tmp_path):
    source = tmp_path / "touch.c"
    source.write_text(TOUCH)
    program = native.build_vendor(source, "ftdsp", sanitizer)
    bad = {"70000000": "0x70000000 is outside the chip's memory, which is SMC at 0x0C000000",
           "1050000000": "0x1050000000 is in the L2 of core 5, but this process is the only core, whose L2 is at 0x10000000",
           "1000000010": "0x1000000010 is in the L2 of core 0, but this process is the only core, whose L2 is at 0x10000000"}
    good = ["10000000", "A0000000", "E0000000", "FFFFFFF0", "D00000000", "DFFFFFFF0"]
    if sanitizer:
        bad["81000000"] = "0x81000000 is not there under AddressSanitizer, whose own memory lies below 0xa0000000"
    else:
        good.append("81000000")
    for address, sentence in bad.items():
        done = native.run([program, address, *(["1"] if caller == "an operator" else [])])
        assert done.returncode != 0 and f"understudy: error: {sentence}" in done.stderr, done
        assert sanitizer or done.returncode == -11
    for address in good:
        done = native.run([program, address])
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


COPIES = r"""
#include <add.h>
#include <string.h>

int main(void)
{
    float host[256] = {0};
    volatile size_t bytes = sizeof host; /* a call, not the compiler's own loop */
    memcpy((void *)0xA0000000, host, bytes);
    fp_add_s((float *)0xA0000000, (float *)0xA0000000, (float *)0xB0000000, 256, 1);
    memcpy(host, (void *)0xB0000000, bytes);
    return host[0] != 0;
}
"""


def test_copies_under_address_sanitizer_say_which_option_they_need(tmp_path):
    source = tmp_path / "copies.c"
    source.write_text(COPIES)
    program = native.build_vendor(source, "ftdsp", "address")
    refused = native.run([program])
    assert refused.returncode != 0
    assert "0xa0000000 is in DDR. Under AddressSanitizer memcpy, printf and their like take such an address with " \
        "ASAN_OPTIONS=protect_shadow_gap=0" in refused.stderr, refused
    done = native.run([program], {"ASAN_OPTIONS": "protect_shadow_gap=0"})
    assert (done.returncode, done.stderr) == (0, ""), done


def example_call(operator, prefix: str, space: str) -> str:
    """A call as the pages' programs make it: literal addresses for operands, arrays on the stack, numbers."""
    window = 0xA0000000 if space == "s" else 0x10000000
    lines, arguments = [], []
    for position, p in enumerate(operator.parameters):
        kind = operator.c_type(p, prefix)
        if p.role in ("mask", "private"):
            arguments += ["0xff" if space == "s" else str(p.values[0])] if (p.role == "mask") == (space == "s") else []
        elif p.is_operand:
            arguments.append(f"({kind} *){hex(window + position * 0x100000)}")
        elif p.role in ("dims", "array"):
            lines.append(f"{kind} {p.name}[] = {{{', '.join(str(value) for value in p.values)}}};")
            arguments.append(p.name)
        elif p.role == "table":
            lines.append(f"{kind} *{p.name}[] = {{({kind} *){hex(window)}, ({kind} *){hex(window + 0x1000)}}};")
            arguments.append(p.name)
        elif p.role == "tensors":
            lines.append(f"{kind} {p.name}_0, *{p.name}[] = {{&{p.name}_0}};")
            arguments.append(p.name)
        elif p.role == "struct":
            lines.append(f"{kind} {p.name};")
            arguments.append(f"&{p.name}")
        elif p.role == "ignored":
            arguments.append("0")
        else:
            arguments.append(f"({kind}){p.values[0]}")
    body = "\n    ".join([*lines, f"{operator.symbol(prefix, space)}({', '.join(arguments)});"])
    return f"static void example_{operator.key}_{prefix}_{space}(void)\n{{\n    {body}\n}}\n"


def plain_call(name: str) -> str:
    """A call of a function that is not in the manual's table: an address for each pointer, 1 for each number."""
    arguments = []
    for position, kind in enumerate(ffi.typeof(getattr(lib, name)).args):
        spelled = kind.cname.replace("uint16_t", "half")  # cffi knows no half
        arguments.append(f"({spelled}){hex(0xA0000000 + position * 0x100000) if kind.kind == 'pointer' else 1}")
    return f"static void example_{name}(void)\n{{\n    {name}({', '.join(arguments)});\n}}\n"


def example_calls() -> dict[str, tuple[str, str]]:
    """Function -> its header, and a function `example_...` that calls it."""
    of_table = {operator.symbol(prefix, space): (operator.header, example_call(operator, prefix, space))
                for operator in manual.operators().values() for prefix, space in operator.functions()}
    everything = {name: header for header, names in complete_functions("ftdsp").items() for name in names}
    return {name: of_table.get(name) or (header, plain_call(name)) for name, header in everything.items()}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_call_of_every_function_compiles(compiler, tmp_path):
    calls = example_calls()
    names = [re.search(r"example_\w+", text)[0] for _, text in calls.values()]
    uses = [f"    if (count > 1) {name}();\n" for name in names]
    includes = sorted({f"#include <{header}>\n" for header, _ in calls.values()})
    main = "int main(int count, char **)\n{\n" if compiler == "g++" else \
        "int main(int count, char **arguments)\n{\n    (void)arguments;\n"
    source = tmp_path / "calls.c"
    source.write_text("".join([*includes, *(text for _, text in calls.values()), main, *uses, "    return 0;\n}\n"]))
    native.check([build(source, compiler, "pie", ["-O0", "-Wno-uninitialized", "-Wno-maybe-uninitialized"])])


PRODUCT = r"""
#include <fullconnection.h>
#include <stdio.h>

int main(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, -1, 2, 0.5f, 1}, bias[4] = {1, -100, 0, 0.25f}, c[4];
    fp_fullconnection_p(a, b, c, bias, 2, 2, 3, ACTIVATION_RELU);
    printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
    return 0;
}
"""


@pytest.mark.parametrize("link", LINKS)
def test_products_in_programs_of_every_kind(link, tmp_path):
    """A program that is linked statically loads no CBLAS."""
    source = tmp_path / "product.c"
    source.write_text(PRODUCT)
    program = build(source, "gcc", link)
    for blas in ("", "/nonexistent/libblas.so"):
        assert native.check([program], {"UNDERSTUDY_BLAS": blas}).split() == ["1.5", "0", "2", "16.25"]
    assert " T us_blas_available" not in native.check(["nm", program])


OCCUPANT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
    (void)argc;
    void *page = mmap((void *)0x90000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    void *library = dlopen(argv[1], RTLD_NOW);
    printf("%d %d\n", page == (void *)0x90000000, library && dlsym(library, "fp_binarycrossentropygrad_s"));
    *(volatile int *)0x10000000 = 1;
    return 0;
}
"""


def test_a_window_that_is_taken_is_reported_and_the_library_loads(tmp_path):
    source = tmp_path / "occupant.c"
    source.write_text(OCCUPANT)
    native.check(["gcc", "-x", "c", source, "-o", tmp_path / "occupant", "-ldl"])
    done = native.run([tmp_path / "occupant", SDK.library_path / "libftdsp.so"], {"UNDERSTUDY_LOG": "error"})
    assert done.returncode == 0 and done.stdout.split() == ["1", "1"], done
    assert re.search(r"error.*cannot reserve the DDR window at 0x80000000", done.stderr), done.stderr
    assert done.stderr.count("cannot reserve") == 1, done.stderr


HEAP = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <dlfcn.h>

#define BEFORE_L2 ((uintptr_t)0x10000000)
int main(int argc, char **argv)
{
    (void)argc;
    while ((uintptr_t)sbrk(0) < BEFORE_L2 + 65536) { /* the heap grows into the window, as Python's does */
        if (!malloc(4096)) return 2;
    }
    float *mine = malloc(64);
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*add)(float *, float *, float *, int, int) = (void (*)(float *, float *, float *, int, int))dlsym(library, "fp_add_s");
    volatile float *l2 = (float *)0x18000000;
    l2[0] = 1;
    mine[0] = -3;
    add(mine, mine, mine, 1, 1);
    void *more = malloc(1 << 16); /* the heap has ended, malloc has not */
    printf("%d %g %g %d\n", (uintptr_t)mine >= BEFORE_L2 && (uintptr_t)mine < BEFORE_L2 + (1 << 20), mine[0], l2[0],
           more != 0);
    return 0;
}
"""


def test_a_window_lies_around_a_heap(tmp_path):
    """The heap of a program that does not move starts behind its image, or at a random place among low addresses."""
    source = tmp_path / "heap.c"
    source.write_text(HEAP)
    native.check(["gcc", source, "-o", tmp_path / "heap", "-fno-pie", "-no-pie", "-Wl,-Ttext-segment=0x0ff00000", "-ldl"])
    done = native.run(["setarch", "-R", tmp_path / "heap", SDK.library_path / "libftdsp.so"], {"UNDERSTUDY_LOG": "warn"})
    assert done.returncode == 0 and done.stdout.split() == ["1", "-6", "1", "1"], done
    assert re.search(r"warn.*the heap of this process is at 0x\w+ to 0x\w+, inside the L2 window", done.stderr), done.stderr
    assert "cannot reserve" not in done.stderr


@pytest.mark.parametrize("link", LINKS)
def test_a_refused_program_says_why_and_where(link, tmp_path):
    source = tmp_path / "refused.c"
    source.write_text(WINDOWS.replace("(0, 0, 0, 0, 0, 0, 0, 0, 1)", "(4, 0, 0, 0, 0, 0, 0, 0, 1)"))
    line = 1 + source.read_text().split("fp_binarycrossentropygrad_s(")[0].count("\n")
    program = build(source, "gcc", link, ["-g"])
    done = native.run([program])
    assert done.returncode == 0
    assert "fp_binarycrossentropygrad_s/input_x/null: input_x is NULL" in done.stderr
    assert done.stderr.endswith(f" at {source}:{line} in main\n")
    refused = {"UNDERSTUDY_CHECK": "refusals", "UNDERSTUDY_CHECK_EXIT": "9"}
    assert native.run([program], refused).returncode == 9
    source.write_text(WINDOWS)
    assert native.run([build(source, "gcc", link)], refused).returncode == 0


def test_the_chip_without_half_names_the_one_that_has_it(tmp_path):
    source = tmp_path / "half.c"
    source.write_text(WINDOWS.replace("fp_binary", "hp_binary"))
    program = build(source, "gcc", "pie")
    refused = native.run([program], {"UNDERSTUDY_FT_CHIP": "FT78NE"}).stderr
    assert "hp_binarycrossentropygrad_s/prefix/chip" in refused and "MT7004" in refused
    for chip in ("MT7004", ""):
        assert native.run([program], {"UNDERSTUDY_FT_CHIP": chip}).stderr == ""


def test_a_half_by_value_needs_a_compiler_that_has_the_type():
    """Others have a 16-bit integer for it, which is passed in another register."""
    half = ffi.typeof("half")
    declared = complete_functions("ftdsp")
    kinds = {name: ffi.typeof(getattr(lib, name)).args for names in declared.values() for name in names}
    takers = [name for name, arguments in kinds.items() if half in arguments]
    headers = "".join(f"#include <{header}>\n" for header in declared)

    def compile_calls(names, *options):
        calls = "".join(f"    {name}({', '.join('0' for _ in kinds[name])});\n" for name in names)
        source = native.work_folder() / "half_by_value.c"
        source.write_text(f"{headers}int main(void)\n{{\n{calls}    return 0;\n}}\n")
        return native.run(["gcc", *options, "-c", source, "-o", "/dev/null", *(f"-I{path}" for path in SDK.include_paths)],
                          {"LC_ALL": "C"})  # fmt: skip

    assert compile_calls(takers).returncode == 0
    assert compile_calls(["hp_add_s", "hp_add_p"], "-U__FLT16_MANT_DIG__").returncode == 0
    said = r"call to '(\w+)' declared with attribute error: a half by value needs _Float16"
    assert set(re.findall(said, compile_calls(takers, "-U__FLT16_MANT_DIG__").stderr)) == set(takers)
    assert len(takers) == 18
