#!/bin/sh
# Builds ggml's CUDA backend and our library on a machine with nvcc, CMake and ninja and no network.
#
#   build.sh GGML_SOURCE BUILD [LLAMA_SOURCE]
#
# GGML_SOURCE   ggml's source tree (its CMakeLists.txt), of the release that native/ggml.lock pins
# BUILD         build folder; the libraries land in BUILD/bin
# LLAMA_SOURCE  llama.cpp's source tree: also builds upstream's llama-bench and llama-server on the same ggml
# ARCHITECTURES in the environment chooses the GPU generation (default 90-real: H100, H200)
# Then everything is measured, and one table printed, by
#   LD_LIBRARY_PATH=$(cat BUILD/cublas) PYTHONPATH=app:tests python3 -m bench.gpu.report BUILD FOLDER
# CUBLAS_LIB, CUBLAS_INCLUDE name cuBLAS' folders where neither the toolkit nor a Python package has it
set -eu
ggml=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
llama=${3:+$(cd "$3" && pwd)}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

nvcc=
for candidate in ${CUDACXX:-} /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc "$(command -v nvcc || true)"; do
    if [ -z "$nvcc" ] && [ -x "$candidate" ]; then nvcc=$candidate; fi
done
[ -n "$nvcc" ] || { echo "build.sh: no nvcc found; set CUDACXX" >&2; exit 1; }
toolkit=$(dirname "$(dirname "$nvcc")")
echo "build.sh: $("$nvcc" --version | tail -1), toolkit $toolkit"

# cuBLAS comes with the toolkit, or with the Python packages of PyTorch.
links=$out/links
mkdir -p "$links"
if [ -e "$toolkit/lib64/libcublas.so" ] && [ -z "${CUBLAS_LIB:-}" ]; then
    lib=$toolkit/lib64
    include=
else
    packages=$("$python" -c "
import importlib.util, pathlib
spec = importlib.util.find_spec('nvidia')
roots = [pathlib.Path(p) for p in spec.submodule_search_locations] if spec else []
found = [lib.parent for root in roots for lib in sorted(root.glob('*/lib/libcublas.so.*'))]
print(found[0] if found else '')" || true)
    lib=${CUBLAS_LIB:-$packages}
    include=${CUBLAS_INCLUDE:-$(dirname "$lib")/include}
    [ -f "$include/cublas_v2.h" ] || { echo "build.sh: no cublas_v2.h in $include; set CUBLAS_INCLUDE" >&2; exit 1; }
    for name in cublas cublasLt; do
        ln -sf "$(ls "$lib"/lib$name.so.* | head -1)" "$links/lib$name.so"
    done
fi
echo "build.sh: cuBLAS in $lib"
# libcuda comes with the driver; what ggml calls of it is enough to link.
for symbol in DeviceGet DeviceGetAttribute GetErrorString MemAddressFree MemAddressReserve MemCreate \
    MemGetAllocationGranularity MemMap MemRelease MemSetAccess MemUnmap; do
    echo "int cu$symbol(void) { return 999; }"
done >"$links/libcuda.c"
cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$links/libcuda.so" "$links/libcuda.c"

if [ -n "$include" ]; then
    # Only cuBLAS' own headers: beside them lie those of another runtime.
    mkdir -p "$links/include"
    ln -sf "$include"/cublas*.h "$links/include/"
    CPATH=$links/include${CPATH:+:$CPATH}
    export CPATH
    set -- "-DCUDA_cublas_LIBRARY=$links/libcublas.so" "-DCUDA_cublasLt_LIBRARY=$links/libcublasLt.so"
else
    set --
fi
CUDACXX=$nvcc cmake -S "$here" -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DDFLASH_CUDA=ON -DDFLASH_CPU=base -DDFLASH_STARTER=OFF "-DDFLASH_GGML_DIR=$ggml" "-DLLAMA_DIR=$llama" \
    "-DCMAKE_CUDA_ARCHITECTURES=${ARCHITECTURES:-90-real}" -DGGML_CUDA_COMPRESSION_MODE=none \
    "-DCUDA_cuda_driver_LIBRARY=$links/libcuda.so" "-DCMAKE_BUILD_RPATH=$lib" "$@" >"$out/configure.log" 2>&1 ||
    { tail -40 "$out/configure.log" >&2; exit 1; }
targets="dflash ggml-cpu ggml-cuda"
[ -z "$llama" ] || targets="$targets llama-bench llama-server"
# shellcheck disable=SC2086
ninja -C "$out" $targets >"$out/build.log" 2>&1 || { grep -B2 -A8 -E "FAILED|error:" "$out/build.log" | head -60 >&2; exit 1; }
echo "$lib" >"$out/cublas"
ls -l "$out/bin"
