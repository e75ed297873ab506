/* The program that Windows starts, for the payload that payload.py lays out on Linux: it runs the Python beside it.
 * Built twice: with WINDOW for the window (no console), without for the terminal. Everything given to it is passed on. */
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

#ifdef WINDOW
#  define PYTHON L"\\_internal\\python\\pythonw.exe"
#else
#  define PYTHON L"\\_internal\\python\\python.exe"
#endif
#define MOST 32768 /* the longest command line of Windows */

static int fail(const wchar_t * words) {
#ifdef WINDOW
    MessageBoxW(NULL, words, L"DFlash Desktop", MB_OK | MB_ICONERROR);
#else
    DWORD n_written = 0;
    HANDLE out = GetStdHandle(STD_ERROR_HANDLE);
    if (!WriteConsoleW(out, words, (DWORD) wcslen(words), &n_written, NULL)) {
        for (; *words; ++words) { /* not a console: the sentence is plain ASCII */
            const char letter = (char) *words;
            WriteFile(out, &letter, 1, &n_written, NULL);
        }
    }
#endif
    return 1;
}

/* Our own arguments as they were typed: behind the program's name, which may be quoted. */
static const wchar_t * arguments(void) {
    const wchar_t * at = GetCommandLineW();
    const wchar_t end = *at == L'"' ? L'"' : L' ';
    at += *at == L'"';
    while (*at && *at != end) {
        ++at;
    }
    return *at ? at + 1 : at;
}

int wmain(void) {
    static wchar_t folder[MOST], line[2 * MOST];
    const DWORD length = GetModuleFileNameW(NULL, folder, MOST);
    wchar_t * slash = length && length < MOST ? wcsrchr(folder, L'\\') : NULL;
    if (!slash) {
        return fail(L"DFlash Desktop cannot find its own folder.\n");
    }
    *slash = 0;
    if (wcslen(folder) + wcslen(arguments()) + 100 > 2 * MOST) {
        return fail(L"The command line is too long.\n");
    }
    wcscpy(line, L"\"");
    wcscat(line, folder);
    wcscat(line, PYTHON L"\" -I -X utf8 -m dflash_desktop ");
    wcscat(line, arguments());

    STARTUPINFOW start = {.cb = sizeof(start)};
    PROCESS_INFORMATION process;
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) {
        return fail(L"DFlash Desktop is not complete: its Python cannot be started. Install it again.\n");
    }
    DWORD code = 1;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    return (int) code;
}
