#!/usr/bin/env bash
# Builds one GPU backend as a module of its own. The program finds it when it lies beside libdflash; without the driver it
# is passed over, and the program starts all the same.
#
#   installers/common/backend.sh cuda|vulkan|hip OUT [--windows]
#
# cuda    brings its own compiler as Python packages; needs g++ up to 15. CUDA_ARCHITECTURES narrows it to one generation
#         (86-real: RTX 30, 89-real: RTX 40, 120a-real: RTX 50, 90-real: H100, H200). OUT also gets cuBLAS and the CUDA runtime.
# vulkan  takes the headers (1.4.309 or newer), the loader's library, glslc and SPIRV-Headers of VULKAN_SDK, else the
#         system's, else on an older Debian those that vulkan_tools.sh fetches: a shader compiler that knows no
#         cooperative matrices and no integer products (Debian 12's) makes a backend without the units that cards have.
#         --windows compiles it with mingw-w64 for Windows instead.
# hip     needs ROCm; never tried.
#
# installers/linux/build.sh makes and ships the Vulkan backend by itself. Another one: give it to that (--backend
# OUT/libggml-cuda.so), or copy what is in OUT into an installed program's folder _internal/dflash_desktop/binding/lib.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
kind=${1:?cuda, vulkan or hip}
is_for_windows=${3:-}
case $kind$is_for_windows in
    cuda | vulkan | hip | vulkan--windows) ;;
    *) echo "backend.sh: what it takes stands in its first lines, not: $*" >&2 && exit 2 ;;
esac
mkdir -p "${2:?the folder for the result}"
out=$(cd "$2" && pwd)
build=$out/build-$kind$is_for_windows
options=(-DCMAKE_BUILD_TYPE=Release -DDFLASH_CPU=base -DDFLASH_STARTER=OFF)

# Whether the system's own are new enough for all that the backend can do.
has_vulkan_tools() {
    [[ -d /usr/include/spirv ]] &&
        printf '#include <vulkan/vulkan_core.h>\n#if VK_HEADER_VERSION < 309\n#error old\n#endif\n' | cc -E - &&
        printf '#version 450\n#extension %s : require\n#extension %s : require\nvoid main() {}\n' \
            GL_NV_cooperative_matrix2 GL_EXT_integer_dot_product |
        glslc -fshader-stage=compute --target-env=vulkan1.3 -o /dev/null -
} &>/dev/null

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
        include=${VULKAN_SDK:-/usr}/include
        loader=${VULKAN_SDK:-/usr}/lib/libvulkan.so
        [[ -e $loader ]] || loader=/usr/lib/x86_64-linux-gnu/libvulkan.so
        if [[ -z ${VULKAN_SDK:-} ]] && ! has_vulkan_tools; then
            tools=$out/vulkan-tools
            "$here/vulkan_tools.sh" "$tools"
            include=$tools/usr/include
            loader=$tools/usr/lib/x86_64-linux-gnu/libvulkan.so
            options+=(-DVulkan_GLSLC_EXECUTABLE="$tools/glslc" -DSPIRV-Headers_DIR="$tools/usr/share/cmake/SPIRV-Headers")
            [[ -n $is_for_windows ]] || options+=(-DVulkan_INCLUDE_DIR="$include" -DVulkan_LIBRARY="$loader")
        fi
        # 1.4.309: what was compiled in, for the bill of materials.
        sed -n -e 's/^#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION(0, \([0-9]*\), \([0-9]*\),.*/\1.\2/p' \
            -e 's/^#define VK_HEADER_VERSION \([0-9]*\)$/\1/p' "$include/vulkan/vulkan_core.h" |
            { read -r patch && read -r release && echo "$release.$patch"; } >"$out/vulkan-headers.txt"
        if [[ -n $is_for_windows ]]; then # the loader there, vulkan-1.dll, exports what Linux' does
            mkdir -p "$out/windows/include"
            { echo EXPORTS && nm -D --defined-only "$loader" | sed -n 's/.* T \(vk[A-Za-z0-9]*\).*/\1/p'; } >"$out/windows/vulkan-1.def"
            x86_64-w64-mingw32-dlltool -D vulkan-1.dll -d "$out/windows/vulkan-1.def" -l "$out/windows/libvulkan-1.dll.a"
            # Alone in a folder: the C library's headers of Linux lie beside the system's.
            cp -r "$include"/{vulkan,vk_video,spirv} "$out/windows/include/"
            options+=(-DCMAKE_TOOLCHAIN_FILE="$root/installers/windows/mingw.cmake"
                -DVulkan_INCLUDE_DIR="$out/windows/include" -DVulkan_LIBRARY="$out/windows/libvulkan-1.dll.a")
        fi
        ;;
    hip) options+=(-DGGML_HIP=ON) ;;
esac

PATH=$out/env/bin:$PATH
cmake -S "$root/native" -B "$build" -G Ninja "${options[@]}"
cmake --build "$build" --target "ggml-$kind"
if [[ -n $is_for_windows ]]; then
    cp "$build/bin/ggml-$kind.dll" "$out/"
    x86_64-w64-mingw32-strip --strip-unneeded "$out/ggml-$kind.dll"
    ls -l "$out/ggml-$kind.dll"
    exit
fi
cp "$build/bin/libggml-$kind.so" "$out/"
strip --strip-unneeded "$out/libggml-$kind.so"
if [[ $kind == cuda ]]; then # its RPATH ($ORIGIN) finds them beside it
    cp -L "$out"/env/lib/python3*/site-packages/nvidia/cu13/lib/lib{cudart,cublas,cublasLt}.so.* "$out/"
fi
ls -l "$out"/*.so*
