"""The aclnn headers as a vendor's program meets them: C11 and C++11, alone, in any order, by any of their paths."""

import pathlib
import shutil
import subprocess

import pytest

from understudy import paths

INCLUDE = pathlib.Path(__file__).parents[2] / "include" / "ascend"
HEADERS = sorted(str(file.relative_to(INCLUDE)) for folder in ("aclnn", "aclnnop")
                 for file in (INCLUDE / folder).rglob("*.h"))  # fmt: skip
LANGUAGES = {"c": ["gcc", "-std=c11", "-xc"], "c++": ["g++", "-std=c++11", "-xc++"]}
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}", f"-I{INCLUDE / 'aclnnop'}"]


def compiler(language):
    command = LANGUAGES[language]
    return [shutil.which(command[0]) or pytest.skip(f"no {command[0]}"), *command[1:], *STRICT]


def accepts(language, source):
    subprocess.run([*compiler(language), "-fsyntax-only", "-"], input=source, text=True, check=True)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", HEADERS)
def test_alone_and_twice(language, header):
    accepts(language, f'#include "{header}"\n#include "{header}"\nextern int end;\n')


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_both_orders(language):
    lines = [f'#include "{header}"' for header in HEADERS]
    bare = [f'#include "{pathlib.Path(header).name}"' for header in HEADERS if header.count("/") == 1 and "op/" in header]
    for order in (lines + bare, bare[::-1] + lines[::-1]):
        accepts(language, "\n".join([*order, "extern int end;", ""]))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_name_of_the_samples_is_taken(language):
    """aclnn-base 10: samples define these themselves."""
    own = "#define CHECK_RET(c, r) r\n#define LOG_PRINT(...) 0\nint Init(void); int GetShapeSize(void); int CreateAclTensor(void);\n"
    accepts(language, "\n".join([f'#include "{header}"' for header in HEADERS]) + "\n" + own)


def test_success_is_called_ok():
    accepts("c", '#include "aclnn/acl_meta.h"\n_Static_assert(OK == 0, "");\n')
    accepts("c++", '#include "aclnn/acl_meta.h"\nstatic_assert(OK == 0, ""); const aclnnStatus *p = &OK;\n')


@pytest.mark.parametrize("copy", sorted((INCLUDE / "aclnnop/level2").glob("*.h")), ids=lambda file: file.name)
def test_second_copies_say_the_same(copy):
    assert (INCLUDE / "aclnnop" / copy.name).exists()
    assert f'#include "../{copy.name}"' in copy.read_text().splitlines()


def test_every_operator_header_has_its_second_copy():
    names = {file.name for file in (INCLUDE / "aclnnop").glob("*.h")}
    assert names == {file.name for file in (INCLUDE / "aclnnop/level2").glob("*.h")}


START = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_npu_format_cast.h"
#include "aclnnop/aclnn_sparse4to2quant_matmul_weight_nz.h"

static int made, deleted;
"""
OF_TENSORS = r"""
int main()
{
    int64_t dims[] = {2, 3};
    aclTensor *tensor = aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr);
    int64_t *shape = nullptr, *storage = nullptr, *strides = nullptr, *blocks = nullptr;
    uint64_t count = 0;
    int format = 0;
    if (aclGetViewShape(tensor, &shape, &count) != OK || count != 2 || shape[1] != 3) return 1;
    if (aclGetStorageShape(tensor, &storage, &count) != OK || aclGetViewStrides(tensor, &strides, &count) != OK) return 1;
    if (aclnnNpuFormatCastCalculateSizeAndFormat(tensor, 29, -1, &blocks, &count, &format) != OK || count != 4) return 1;
    delete[] shape;
    delete[] storage;
    delete[] strides;
    delete[] blocks;
    std::printf("%d %d\n", made, deleted);
    return aclDestroyTensor(tensor);
}
"""
OF_WEIGHTS = r"""
int main()
{
    int8_t weight[] = {0, 0, 1, 2, 3, 0, 0, 4}, full[] = {0, 1, 2, 3, 0, 0, 0, 0};
    int64_t dims[] = {1, 8};
    aclIntArray *shape = aclCreateIntArray(dims, 2);
    int8_t *kept = nullptr;
    uint8_t *places = nullptr;
    int64_t *kept_dims = nullptr, *place_dims = nullptr;
    uint64_t rank = 0;
    if (aclnnTransSparse4to2Para(full, shape, &kept, &kept_dims, &rank, &places, &place_dims, &rank) == OK) return 1;
    if (made != deleted || kept != nullptr) return 1;
    if (aclnnTransSparse4to2Para(weight, shape, &kept, &kept_dims, &rank, &places, &place_dims, &rank) != OK) return 1;
    if (kept[0] != 1 || kept[3] != 4 || kept[511] != 0 || kept_dims[3] != 32 || place_dims[3] != 8) return 1;
    delete[] kept;
    delete[] kept_dims;
    delete[] places;
    delete[] place_dims;
    std::printf("%d %d\n", made, deleted);
    return aclDestroyIntArray(shape);
}
"""
REPLACED = """
void *operator new[](std::size_t size) { made++; return static_cast<char *>(std::malloc(size + 64)) + 64; }
void gone(void *block) { deleted++; std::free(static_cast<char *>(block) - 64); }
void operator delete[](void *block) noexcept { gone(block); }
void operator delete[](void *block, std::size_t) noexcept { gone(block); }
"""


@pytest.mark.parametrize("body, arrays", [(OF_TENSORS, 4), (OF_WEIGHTS, 8)], ids=["tensors", "weights"])
@pytest.mark.parametrize("replaced", [False, True], ids=["default", "replaced"])
def test_arrays_are_right_for_delete(tmp_path, replaced, body, arrays):
    """The caller's delete[] must fit, also where the program replaces operator new[]."""
    stack, program = paths.STACKS["ascend"], tmp_path / "program"
    library, folders = stack.library_path, [f"-I{folder}" for folder in stack.include_paths]
    subprocess.run([*compiler("c++"), "-", *folders, "-o", program, f"-L{library}", "-lopapi", "-lnnopbase", "-lascendcl",
                    f"-Wl,-rpath,{library}"], input=START + REPLACED * replaced + body, text=True, check=True)  # fmt: skip
    expected = f"{arrays * replaced} {arrays * replaced}"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip() == expected
