// Test programs are started once for each test: as in main.cpp of the program, Highway's library
// measures no clock when it is loaded.
#include <hwy/nanobenchmark.h>

uint64_t hwy::platform::TimerResolution() { return 1; }
