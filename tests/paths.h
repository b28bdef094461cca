// Where the sources and the programs are that tests use. Only paths.cpp is compiled with the paths,
// so that a compiler cache serves every clone.
#pragma once

namespace lacuna {

extern const char* const kSourceFolder;
extern const char* const kProgram;             // lacuna
extern const char* const kOwnThingsProgram;    // framework/program/own_things.cpp
extern const char* const kMpirun;              // empty without MPI
extern const char* const kWriteFaultsLibrary;  // faults/write_faults.cpp; empty with a sanitizer

}  // namespace lacuna
