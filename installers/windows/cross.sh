#!/usr/bin/env bash
# Compiles the engine for Windows on Linux, into OUT/dflash_desktop: proof that the sources build there, and the libraries
# of the payload that payload.py lays out. Debian: apt-get install g++-mingw-w64-x86-64-posix; and CMake, Ninja.
#
#   installers/windows/cross.sh OUT [base|all] [vulkan|none]
#
# base (the default): one CPU backend, for processors with AVX2; all: one per instruction set. vulkan (the default): the
# backend for graphics cards of every maker too; without a driver it is passed over.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
cpu=${2:-base}
gpu=${3:-vulkan}

cmake -S "$root/native" -B "$out/build-$cpu" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/mingw.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DDFLASH_CPU="$cpu" -DDFLASH_STRICT="${DFLASH_STRICT:-OFF}" -DDFLASH_STARTER="${DFLASH_STARTER:-ON}"
cmake --build "$out/build-$cpu" --target dflash
rm -rf "$out/dflash_desktop"
cmake --install "$out/build-$cpu" --component app --prefix "$out" --strip
lib=$out/dflash_desktop/binding/lib
for name in libstdc++-6 libgcc_s_seh-1 libwinpthread-1; do
    path=$(x86_64-w64-mingw32-g++-posix -print-file-name="$name.dll")
    install -m 644 "$path" "$lib/"
    x86_64-w64-mingw32-strip "$lib/$name.dll"
done
if [[ $gpu == vulkan ]]; then
    "$here/../common/backend.sh" vulkan "$out/backend" --windows
    install -m 644 "$out/backend/ggml-vulkan.dll" "$lib/"
fi
ls -l "$lib"
