#!/bin/sh
# mxcc for host programs: the host's C++ compiler with the SDK's folders and libmcruntime (maca-runtime 6).
# Options for the device are dropped. Device code (__global__, <<<...>>>) is not emulated and is refused.

complain() {
    echo "mxcc: $*" >&2
    exit 1
}

# The SDK above this script, else $MACA_PATH, else the vendor's default; --maca-path wins.
here=$(dirname -- "$(readlink -f -- "$0")")
root=/opt/maca
for candidate in "$here/.." "$here/../.." "$MACA_PATH"; do
    if [ -d "$candidate/include/mcr" ]; then
        root=$candidate
        break
    fi
done

language=none # what -x says of the files that follow
link=yes
left=$#
[ "$left" -gt 0 ] || complain "no input files"
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    case $argument in
    -x | --maca-path | --offload-arch | --default-stream)
        [ "$left" -gt 0 ] || complain "$argument needs a value"
        value=$1
        shift
        left=$((left - 1))
        ;;
    -x?*) value=${argument#-x} argument=-x ;;
    --maca-path=* | --offload-arch=* | --default-stream=*) value=${argument#*=} argument=${argument%%=*} ;;
    esac
    case $argument in
    -x)
        language=$value
        [ "$value" = maca ] || set -- "$@" -x "$value"
        ;;
    --maca-path)
        [ -d "$value/include/mcr" ] || complain "no SDK at $value: include/mcr is missing"
        root=$value
        ;;
    --offload-arch) ;;
    --default-stream)
        case $value in
        legacy | null) ;;
        per-thread)
            echo "mxcc: note: stream 0 stays the legacy default stream, which orders more than per-thread" >&2
            set -- "$@" -DMACA_API_PER_THREAD_DEFAULT_STREAM
            ;;
        *) complain "--default-stream is $value; it is legacy, null or per-thread" ;;
        esac
        ;;
    -c | -S | -E | -M | -MM | -fsyntax-only)
        link=no
        set -- "$@" "$argument"
        ;;
    *.maca | *.c | *.cc | *.cpp | *.cxx | *.C)
        if [ -f "$argument" ] && grep -Eq '(^|[^A-Za-z0-9_])__global__([^A-Za-z0-9_]|$)|<<<.*>>>' "$argument"; then
            complain "$argument has device code, which is not emulated"
        fi
        case $language,$argument in
        maca,* | none,*.maca) set -- "$@" -x c++ "$argument" -x none ;;
        none,*.c) set -- "$@" -x c "$argument" -x none ;;
        *) set -- "$@" "$argument" ;;
        esac
        ;;
    *) set -- "$@" "$argument" ;;
    esac
done

set -- "$@" "-I$root/include" "-I$root/include/mcr" "-I$root/include/mcdnn" "-I$root/include/mcblas" "-I$root/include/common"
if [ "$link" = yes ]; then
    set -- "$@" "-L$root/lib" -Xlinker -rpath -Xlinker "$root/lib" -lmcruntime # -Wl,… would split a path at its commas
fi
# Build systems name this script in CXX. If that calls us again, it is to find c++, and not itself for ever.
compiler=${CXX:-c++}
unset CXX
exec $compiler "$@"
