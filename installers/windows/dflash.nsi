; The installer for Windows, for one person and without administrator rights. Compiles on Linux and Windows alike:
;   makensis -INPUTCHARSET UTF8 -DPAYLOAD=<folder> -DVERSION=0.1.0 -DOUT=<file.exe> dflash.nsi
; PAYLOAD is the folder to install, with dflash-desktop.exe in it. Silent: /S, with another place: /D=<folder> as the last
; argument. Uninstall silently: uninstall.exe /S; it keeps chats and models unless /DELETEDATA is given.

Unicode true
!define APP_EXE "dflash-desktop.exe"
!define NAME "DFlash Desktop"
!define ID "dflash-desktop"
!define PROG_ID "DFlashDesktop.gguf"
!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\${ID}"

!include "MUI2.nsh"
!include "FileFunc.nsh"
!include "LogicLib.nsh"
!include "WinVer.nsh"

Name "${NAME}"
OutFile "${OUT}"
Target amd64-unicode
RequestExecutionLevel user
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "Software\${ID}" "InstallDir"
SetCompressor /SOLID lzma
BrandingText "${NAME} ${VERSION}"
ManifestDPIAware true
ShowInstDetails nevershow
ShowUninstDetails nevershow

VIProductVersion "${VERSION}.0"
VIAddVersionKey ProductName "${NAME}"
VIAddVersionKey FileDescription "${NAME} ${VERSION}, installer"
VIAddVersionKey FileVersion "${VERSION}.0"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey LegalCopyright "Apache License 2.0"

!ifdef ICON
  !define MUI_ICON "${ICON}"
  !define MUI_UNICON "${ICON}"
!endif
!define MUI_ABORTWARNING
!define MUI_FINISHPAGE_RUN "$INSTDIR\${APP_EXE}"
!define MUI_FINISHPAGE_RUN_TEXT "$(StartNow)"
!define MUI_COMPONENTSPAGE_NODESC

!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_COMPONENTS
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "SimpChinese"

LangString StartNow ${LANG_ENGLISH} "Start DFlash Desktop"
LangString StartNow ${LANG_SIMPCHINESE} "启动 DFlash Desktop"
LangString Program ${LANG_ENGLISH} "Program (needed)"
LangString Program ${LANG_SIMPCHINESE} "程序（必需）"
LangString OnDesktop ${LANG_ENGLISH} "Shortcut on the desktop"
LangString OnDesktop ${LANG_SIMPCHINESE} "桌面快捷方式"
LangString OpensGguf ${LANG_ENGLISH} "Open .gguf model files"
LangString OpensGguf ${LANG_SIMPCHINESE} "打开 .gguf 模型文件"
LangString DeletesData ${LANG_ENGLISH} "Delete chats, settings and downloaded models"
LangString DeletesData ${LANG_SIMPCHINESE} "删除聊天记录、设置和已下载的模型"
LangString IsRunning ${LANG_ENGLISH} "DFlash Desktop is running. Close it, then try again."
LangString IsRunning ${LANG_SIMPCHINESE} "DFlash Desktop 正在运行。请先关闭它，然后重试。"
LangString TooOld ${LANG_ENGLISH} "DFlash Desktop needs 64-bit Windows 10 or newer."
LangString TooOld ${LANG_SIMPCHINESE} "DFlash Desktop 需要 64 位 Windows 10 或更高版本。"
LangString NotOurs ${LANG_ENGLISH} "This folder holds other files. Choose an empty one, or a new one."
LangString NotOurs ${LANG_SIMPCHINESE} "此文件夹中有其他文件。请选择空文件夹或新文件夹。"

; A running program keeps its own file from being opened for writing.
!macro RefuseWhileRunning UN
  Function ${UN}RefuseWhileRunning
    IfFileExists "$INSTDIR\${APP_EXE}" 0 free
    again:
    ClearErrors
    FileOpen $0 "$INSTDIR\${APP_EXE}" a
    IfErrors 0 close
      MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "$(IsRunning)" /SD IDCANCEL IDRETRY again
      SetErrorLevel 3
      Quit
    close:
    FileClose $0
    free:
  FunctionEnd
!macroend
!insertmacro RefuseWhileRunning ""
!insertmacro RefuseWhileRunning "un."

Function .onInit
  ${IfNot} ${AtLeastWin10} ; a 32-bit Windows does not even start this program
    MessageBox MB_OK|MB_ICONSTOP "$(TooOld)" /SD IDOK
    SetErrorLevel 2
    Quit
  ${EndIf}
FunctionEnd

Section "$(Program)" SecProgram
  SectionIn RO
  Call RefuseWhileRunning
  ; An update removes what an older version left. Only a folder that we filled before, or an empty one, is touched.
  IfFileExists "$INSTDIR\uninstall.exe" ours
  ${DirState} "$INSTDIR" $0
  ${If} $0 = 1
    MessageBox MB_OK|MB_ICONSTOP "$(NotOurs)" /SD IDOK
    SetErrorLevel 4
    Quit
  ${EndIf}
  ours:
  RMDir /r "$INSTDIR\_internal"
  SetOutPath "$INSTDIR"
  File /r "${PAYLOAD}\*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\${APP_EXE}"
  WriteRegStr HKCU "Software\${ID}" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "DisplayIcon" "$INSTDIR\${APP_EXE}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "Publisher" "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL_KEY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "NoRepair" 1
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  IntFmt $0 "0x%08X" $0
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" "EstimatedSize" "$0"
SectionEnd

Section "$(OnDesktop)" SecDesktop
  CreateShortcut "$DESKTOP\${NAME}.lnk" "$INSTDIR\${APP_EXE}"
SectionEnd

Section "$(OpensGguf)" SecFiles
  WriteRegStr HKCU "Software\Classes\${PROG_ID}" "" "Language model"
  WriteRegStr HKCU "Software\Classes\${PROG_ID}\DefaultIcon" "" "$INSTDIR\${APP_EXE},0"
  WriteRegStr HKCU "Software\Classes\${PROG_ID}\shell\open\command" "" '"$INSTDIR\${APP_EXE}" "%1"'
  ; Offered beside what opened these files before, never in its place.
  WriteRegStr HKCU "Software\Classes\.gguf\OpenWithProgids" "${PROG_ID}" ""
  ReadRegStr $0 HKCU "Software\Classes\.gguf" ""
  ${If} $0 == ""
    WriteRegStr HKCU "Software\Classes\.gguf" "" "${PROG_ID}"
  ${EndIf}
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
SectionEnd

Section "un.$(Program)" UnSecProgram
  SectionIn RO
  Call un.RefuseWhileRunning
  ; Of the folder only what was installed goes: somebody may keep other things beside it, a portable data folder for one.
  RMDir /r "$INSTDIR\_internal"
  Delete "$INSTDIR\${APP_EXE}"
  Delete "$INSTDIR\dflash.exe"
  Delete "$INSTDIR\uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  Delete "$DESKTOP\${NAME}.lnk"
  DeleteRegKey HKCU "${UNINSTALL_KEY}"
  DeleteRegKey HKCU "Software\${ID}"
  DeleteRegKey HKCU "Software\Classes\${PROG_ID}"
  DeleteRegValue HKCU "Software\Classes\.gguf\OpenWithProgids" "${PROG_ID}"
  ReadRegStr $0 HKCU "Software\Classes\.gguf" ""
  ${If} $0 == "${PROG_ID}"
    DeleteRegValue HKCU "Software\Classes\.gguf" ""
  ${EndIf}
  DeleteRegKey /ifempty HKCU "Software\Classes\.gguf\OpenWithProgids"
  DeleteRegKey /ifempty HKCU "Software\Classes\.gguf"
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
SectionEnd

Section /o "un.$(DeletesData)" UnSecData
  RMDir /r "$LOCALAPPDATA\${ID}"
SectionEnd

Function un.onInit
  ${GetParameters} $0
  ClearErrors
  ${GetOptions} $0 "/DELETEDATA" $1
  ${IfNot} ${Errors}
    SectionGetFlags ${UnSecData} $2
    IntOp $2 $2 | ${SF_SELECTED}
    SectionSetFlags ${UnSecData} $2
  ${EndIf}
FunctionEnd
