/* Loads dflash.dll from the folder named, as Python does, and says what it can do: run under wine by test_windows.py. */
#include <stdio.h>
#include <windows.h>

#include "dflash.h"

typedef int32_t (*abi_version_fn)(void);
typedef int32_t (*start_fn)(const char *);
typedef int32_t (*count_fn)(int32_t *);
typedef const char * (*error_fn)(void);

int main(int argc, char ** argv) {
    char path[4096];
    if (argc != 2) {
        return 2;
    }
    snprintf(path, sizeof(path), "%s\\dflash.dll", argv[1]);
    HMODULE library = LoadLibraryExA(path, NULL, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    if (!library) {
        printf("not loaded: %lu\n", GetLastError());
        return 1;
    }
    printf("abi %d\n", (int) ((abi_version_fn) (void *) GetProcAddress(library, "dflash_abi_version"))());
    const int32_t status = ((start_fn) (void *) GetProcAddress(library, "dflash_start"))(argv[1]);
    int32_t n_devices = 0;
    ((count_fn) (void *) GetProcAddress(library, "dflash_device_count"))(&n_devices);
    printf("start %d, devices %d %s\n", (int) status, (int) n_devices, ((error_fn) (void *) GetProcAddress(library, "dflash_last_error"))());
    return status == 0 && n_devices > 0 ? 0 : 1;
}
