#!/usr/bin/env bash
# Builds one GPU backend as a module of its own. The program finds it when it lies beside libdflash; without the driver it
# is passed over, and the program starts all the same.
#
#   installers/common/backend.sh cuda|vulkan|hip OUT
#
# cuda    brings its own compiler as Python packages; needs g++ up to 15. CUDA_ARCHITECTURES narrows it to one generation
#         (86-real: RTX 30, 89-real: RTX 40, 120a-real: RTX 50, 90-real: H100, H200). OUT also gets cuBLAS and the CUDA runtime.
# vulkan  needs libvulkan-dev with headers of 1.4.309 or newer, glslc and spirv-headers. VULKAN_HEADERS names a folder with
#         newer headers than the system's.
# hip     needs ROCm; never tried.
#
# Then either build the installer with it (installers/linux/build.sh --backend OUT/libggml-vulkan.so), or copy what is in
# OUT into an installed program's folder _internal/dflash_desktop/binding/lib.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
kind=${1:?cuda, vulkan or hip}
mkdir -p "${2:?the folder for the result}"
out=$(cd "$2" && pwd)
build=$out/build-$kind
options=(-DCMAKE_BUILD_TYPE=Release -DDFLASH_CPU=base -DDFLASH_STARTER=OFF)

python3 -m venv "$out/env"
"$out/env/bin/pip" install -q cmake ninja
case $kind in
    cuda)
        "$out/env/bin/pip" install -q 'cuda-toolkit[nvcc,crt,nvvm,cccl,cudart,cublas]==13.0.2'
        options+=(-DDFLASH_CUDA=ON -DPython3_EXECUTABLE="$out/env/bin/python")
        [[ -z ${CUDA_ARCHITECTURES:-} ]] || options+=(-DCMAKE_CUDA_ARCHITECTURES="$CUDA_ARCHITECTURES")
        ;;
    vulkan)
        options+=(-DDFLASH_VULKAN=ON)
        [[ -z ${VULKAN_HEADERS:-} ]] || options+=(-DCMAKE_CXX_FLAGS="-isystem$VULKAN_HEADERS")
        ;;
    hip) options+=(-DGGML_HIP=ON) ;;
    *) echo "backend.sh: $kind is none of cuda, vulkan, hip" >&2 && exit 2 ;;
esac

PATH=$out/env/bin:$PATH
cmake -S "$root/native" -B "$build" -G Ninja "${options[@]}"
cmake --build "$build" --target "ggml-$kind"
cp "$build/bin/libggml-$kind.so" "$out/"
strip --strip-unneeded "$out/libggml-$kind.so"
if [[ $kind == cuda ]]; then # its RPATH ($ORIGIN) finds them beside it
    cp -L "$out"/env/lib/python3*/site-packages/nvidia/cu13/lib/lib{cudart,cublas,cublasLt}.so.* "$out/"
fi
ls -l "$out"/*.so*
