#include "paths.h"

namespace lacuna {

const char* const kSourceFolder = LACUNA_SOURCE_DIR;
const char* const kProgram = LACUNA_PROGRAM;
const char* const kOwnThingsProgram = LACUNA_OWN_THINGS;
const char* const kMpirun = LACUNA_MPIRUN;
const char* const kWriteFaultsLibrary = LACUNA_WRITE_FAULTS_LIBRARY;

}  // namespace lacuna
