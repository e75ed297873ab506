# Which ggml, from where, built how. Gives the target ggml::ggml. First that applies:
#   DFLASH_GGML_DIR=<folder>   a ggml source tree you have (offline builds, work on ggml itself)
#   DFLASH_GGML_SYSTEM=ON      an installed ggml with a CMake package; its own backends, not ours
#   otherwise                  the release pinned in ggml.lock, fetched once with pip and checked by hash
set(DFLASH_GGML_DIR "" CACHE PATH "ggml source tree to build instead of the pinned release")
option(DFLASH_GGML_SYSTEM "use an installed ggml" OFF)
option(DFLASH_CUDA "build the CUDA backend" OFF)
option(DFLASH_VULKAN "build the Vulkan backend" OFF)     # needs the loader, headers of 1.4.309 or newer, glslc, SPIRV-Headers
set(DFLASH_CPU host CACHE STRING "host: this machine; base: x86-64 with AVX2; all: one backend per instruction set")
set_property(CACHE DFLASH_CPU PROPERTY STRINGS host base all)

# Chooses the instruction sets of the CPU backend. GGML_NATIVE is refused together with GGML_BACKEND_DL
# (the backend must be able to say no on a lesser CPU), so "host" asks the compiler what -march=native
# means here and turns on ggml's switches for it.
function(dflash_choose_cpu)
  set(all OFF)
  if(DFLASH_CPU STREQUAL "all")
    set(all ON)
  endif()
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  set(GGML_CPU_ALL_VARIANTS ${all} CACHE BOOL "" FORCE)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    return()
  endif()
  set(table SSE42=__SSE4_2__ AVX=__AVX__ F16C=__F16C__ FMA=__FMA__ AVX2=__AVX2__ BMI2=__BMI2__
      AVX_VNNI=__AVXVNNI__ AVX512=__AVX512VL__ AVX512_VBMI=__AVX512VBMI__ AVX512_VNNI=__AVX512VNNI__
      AVX512_BF16=__AVX512BF16__ AMX_TILE=__AMX_TILE__ AMX_INT8=__AMX_INT8__)
  set(macros "__SSE4_2__ __AVX__ __F16C__ __FMA__ __AVX2__ __BMI2__ ")
  if(DFLASH_CPU STREQUAL "host" AND NOT MSVC AND NOT CMAKE_CROSSCOMPILING)
    file(WRITE "${CMAKE_BINARY_DIR}/empty.cpp" "")
    execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E "${CMAKE_BINARY_DIR}/empty.cpp"
                    OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
  endif()
  foreach(pair IN LISTS table)
    string(REGEX MATCH "^([A-Z0-9_]+)=(.+)$" _ "${pair}")
    set(on OFF)
    if(macros MATCHES "${CMAKE_MATCH_2} ")
      set(on ON)
    endif()
    string(REGEX REPLACE "=.*" "" feature "${pair}")
    set(GGML_${feature} ${on} CACHE BOOL "" FORCE)
  endforeach()
endfunction()

if(DFLASH_GGML_SYSTEM)
  find_package(ggml 0.25 CONFIG REQUIRED)
  return()
endif()

if(DFLASH_GGML_DIR)
  set(ggml_source "${DFLASH_GGML_DIR}")
else()
  dflash_fetch(ggml_source LOCK "${CMAKE_CURRENT_LIST_DIR}/../ggml.lock" AS ggml FORM sdist
               FIND "*/vendor/llama.cpp/ggml" WITH ../LICENSE
               PATTERNS "*/vendor/llama.cpp/LICENSE" "*/vendor/llama.cpp/ggml/CMakeLists.txt" "*/vendor/llama.cpp/ggml/cmake/*"
                        "*/vendor/llama.cpp/ggml/include/*" "*/vendor/llama.cpp/ggml/src/*")
endif()
dflash_choose_cpu()
if(DFLASH_CUDA)
  include("${CMAKE_CURRENT_LIST_DIR}/cuda.cmake")
  set(GGML_CUDA ON CACHE BOOL "" FORCE)
endif()
if(DFLASH_VULKAN)
  set(GGML_VULKAN ON CACHE BOOL "" FORCE)
endif()
set(BUILD_SHARED_LIBS ON)
set(GGML_BACKEND_DL ON CACHE BOOL "" FORCE)        # a missing driver loses one backend, not the program
set(GGML_OPENMP OFF CACHE BOOL "" FORCE)           # no libgomp beside other packages'; we own the thread pool
set(GGML_LLAMAFILE ON CACHE BOOL "" FORCE)         # faster CPU prefill; ggml alone leaves it off
set(GGML_CUDA_NCCL OFF CACHE BOOL "" FORCE)
set(GGML_CUDA_GRAPHS ON CACHE BOOL "" FORCE)       # OFF outside llama.cpp; a launch-bound step needs it
set(GIT_EXE OFF CACHE STRING "" FORCE)             # else ggml reports OUR commit as its own
add_subdirectory("${ggml_source}" ggml EXCLUDE_FROM_ALL)
set(DFLASH_GGML_LIBRARIES ggml ggml-base)
# No version suffixes: a wheel stores each link of libx.so -> libx.so.0 -> libx.so.0.25.3 as a full copy.
# It also keeps our libggml.so and another package's libggml.so.0 two libraries in one process.
foreach(library IN LISTS DFLASH_GGML_LIBRARIES GGML_AVAILABLE_BACKENDS)
  foreach(property IN ITEMS VERSION SOVERSION PUBLIC_HEADER)
    set_property(TARGET ${library} PROPERTY ${property})     # unset: "" would name the file "libggml.so."
  endforeach()
endforeach()
