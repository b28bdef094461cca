// Checks for memory for the code that oneDNN generates at run time.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace lacuna {

/// *Errors:* std::bad_alloc if less than 16 MiB of address space are left: oneDNN 2.7 does not
/// check its allocation for a kernel's code, and crashes if it failed. Its first product takes
/// about 6 MB. *Cost:* two system calls; no memory is touched.
inline void require_memory_for_kernels() {
  constexpr size_t kRoom = size_t{16} << 20;
  void* const room =
      ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  ::munmap(room, kRoom);
}

}  // namespace lacuna
