# Builds for 64-bit Windows with Debian's mingw-w64. The -posix compilers: std::thread needs them.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# ggml's C code asks for thread power throttling, a Windows 10 type that Debian 12's headers (10.0) do not know; below
# Windows 8 it does without. Drop the line with mingw-w64 11. In C++ the default is right.
set(CMAKE_C_FLAGS_INIT "-D_WIN32_WINNT=0x0601")
