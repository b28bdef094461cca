// What every kernel includes once, and not anew for each instruction set: compiled once.
#pragma once

#include <fmt/core.h>
#include <hwy/base.h>
#include <hwy/targets.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>
