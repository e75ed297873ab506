# Finds the CUDA compiler: the one you name (CUDACXX, CMAKE_CUDA_COMPILER, CUDAToolkit_ROOT), else the one in
# Python packages (cuda-toolkit[nvcc,crt,nvvm,cccl,cudart,cublas], all under nvidia/cu13), else an installed
# toolkit. The packages lack the linker's names (libcublas.so) and libcuda, which comes with the driver: both
# are made in the build tree.
if(CMAKE_CUDA_COMPILER OR CUDAToolkit_ROOT OR DEFINED ENV{CUDACXX})
  return()
endif()
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c "if True:
    import importlib.util, pathlib
    spec = importlib.util.find_spec('nvidia')
    roots = [pathlib.Path(p) for p in spec.submodule_search_locations] if spec else []
    print(next((c.as_posix() for r in roots for c in sorted(r.glob('cu[0-9]*')) if list(c.glob('bin/nvcc*'))), ''))"
  OUTPUT_VARIABLE toolkit OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT toolkit)
  return()                                         # then CMake looks for an installed toolkit
endif()
find_program(CMAKE_CUDA_COMPILER nvcc PATHS "${toolkit}/bin" NO_DEFAULT_PATH REQUIRED)
set(CUDAToolkit_ROOT "${toolkit}" CACHE PATH "" FORCE)
if(UNIX)
  set(CMAKE_CUDA_FLAGS "-L${toolkit}/lib" CACHE STRING "" FORCE)     # its profile looks in lib64
  set(links "${CMAKE_BINARY_DIR}/cuda-links")
  file(MAKE_DIRECTORY "${links}")
  foreach(name IN ITEMS cudart cublas cublasLt)
    file(GLOB library "${toolkit}/lib/lib${name}.so.*")
    file(CREATE_LINK "${library}" "${links}/lib${name}.so" SYMBOLIC)
    set(CUDA_${name}_LIBRARY "${links}/lib${name}.so" CACHE FILEPATH "" FORCE)
  endforeach()
  set(CUDA_CUDART "${links}/libcudart.so" CACHE FILEPATH "" FORCE)
  set(stub "")
  foreach(symbol IN ITEMS DeviceGet DeviceGetAttribute GetErrorString MemAddressFree MemAddressReserve MemCreate
          MemGetAllocationGranularity MemMap MemRelease MemSetAccess MemUnmap)   # what ggml-cuda calls
    string(APPEND stub "int cu${symbol}(void) { return 999; }\n")
  endforeach()
  file(WRITE "${links}/libcuda.c" "${stub}")
  execute_process(COMMAND "${CMAKE_C_COMPILER}" -shared -fPIC -Wl,-soname,libcuda.so.1
                          -o "${links}/libcuda.so" "${links}/libcuda.c" COMMAND_ERROR_IS_FATAL ANY)
  set(CUDA_cuda_driver_LIBRARY "${links}/libcuda.so" CACHE FILEPATH "" FORCE)
  # where the packages nvidia-cublas and nvidia-cuda-runtime lie, seen from dflash_desktop/binding/lib
  list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/../../../nvidia/cu13/lib")
endif()
