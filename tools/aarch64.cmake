# cmake --toolchain tools/aarch64.cmake: for aarch64 Linux, with Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
