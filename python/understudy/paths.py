"""Where the SDK trees are and what is in them.

The trees are shaped like the vendors' installs. They are part of the package; the environment variable UNDERSTUDY_SDK
names another folder of the same shape.
"""

import os
import pathlib
from dataclasses import dataclass

import understudy
from understudy.errors import SdkError

HOME_VARIABLES = {"ascend": "ASCEND_HOME_PATH", "maca": "MACA_PATH", "ftdsp": "FTDSP_PATH"}


def part(name: str) -> pathlib.Path:
    """A file or folder of the package. An editable install keeps what was built apart from the sources."""
    places = [pathlib.Path(folder).resolve() / name for folder in understudy.__path__]
    return next((place for place in places if place.exists()), places[0])


def sdk() -> pathlib.Path:
    """The folder that holds the three SDK trees."""
    override = os.environ.get("UNDERSTUDY_SDK")
    folder = pathlib.Path(override).resolve() if override else part("sdk")
    origin = "UNDERSTUDY_SDK" if override else "the installed package"
    if not folder.is_dir():
        raise SdkError(f"no SDK folder at {folder} (from {origin})")
    if not any((folder / name).is_dir() for name in HOME_VARIABLES):
        raise SdkError(f"{folder} (from {origin}) is no SDK: it has no folder {', '.join(HOME_VARIABLES)}")
    return folder


def examples() -> pathlib.Path:
    """The shipped example programs."""
    return part("examples_c")


@dataclass(frozen=True)
class Stack:
    """One vendor's install: folders relative to the root, libraries in link order (without "lib" and ".so")."""

    name: str
    include: tuple[str, ...]
    library: str
    link: tuple[str, ...]

    @property
    def root(self) -> pathlib.Path:
        return sdk() / self.name

    @property
    def home_variable(self) -> str:
        """The environment variable that names the root in the vendor's build files."""
        return HOME_VARIABLES[self.name]

    @property
    def include_paths(self) -> list[pathlib.Path]:
        return [self.root / folder for folder in self.include]

    @property
    def library_path(self) -> pathlib.Path:
        return self.root / self.library

    @property
    def libraries(self) -> list[pathlib.Path]:
        return [self.library_path / f"lib{name}.so" for name in self.link]


STACKS = {
    stack.name: stack
    for stack in (
        Stack(
            "ascend",
            ("include", "include/aclnn", "include/aclnnop"),
            "lib64",
            ("opapi_nn", "opapi_math", "opapi_cv", "opapi_transformer", "ascendcl", "nnopbase", "acl_op_compiler", "hccl",
             "hcomm", "runtime", "profapi", "acl_tdt_channel", "acl_tdt_queue", "msprofiler", "ascend_dump"),
        ),
        Stack(
            "maca",
            ("include", "include/mcr", "include/mcdnn", "include/mcblas", "include/common"),
            "lib",
            ("mcdnn", "mcblas", "mcblasLt", "mcruntime"),
        ),
        Stack("ftdsp", ("include",), "lib", ("ftdsp",)),
    )
}
