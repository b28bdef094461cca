// The file driver that HDF5 reads through: plain pread, with a close that cannot fail.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <compare>
#include <cstring>
#include <new>

#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"

namespace lacuna::hdf5 {
namespace {

constexpr haddr_t kMaxAddress = (haddr_t{1} << 62) - 1;

// The library casts between its H5FD_t and this, which therefore begins with one.
struct ReadFile {
  H5FD_t base;
  int descriptor;
  dev_t device;
  ino_t inode;
  haddr_t allocated;  // end of what the file says it has ("eoa")
  haddr_t end;        // end of the file ("eof")
};

ReadFile* own(H5FD_t* file) { return reinterpret_cast<ReadFile*>(file); }
const ReadFile* own(const H5FD_t* file) { return reinterpret_cast<const ReadFile*>(file); }

// For library_reason().
void tell(const char* call, hid_t minor) {
  H5Epush2(H5E_DEFAULT, __FILE__, call, __LINE__, H5E_ERR_CLS, H5E_IO, minor, "%s",
           std::strerror(errno));
}

// Files that links lead to are opened by their names, too.
H5FD_t* open_file(const char* name, unsigned flags, hid_t, haddr_t) {
  if ((flags & H5F_ACC_RDWR) != 0) return nullptr;
  const int descriptor = ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    tell("open", H5E_CANTOPENFILE);
    return nullptr;
  }
  struct stat facts {};
  auto* file = ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) ? new (std::nothrow)
                                                                                ReadFile{}
                                                                          : nullptr;
  if (file == nullptr) {
    ::close(descriptor);
    return nullptr;
  }
  file->descriptor = descriptor;
  file->device = facts.st_dev;
  file->inode = facts.st_ino;
  file->end = static_cast<haddr_t>(facts.st_size);
  return &file->base;
}

herr_t close_file(H5FD_t* file) {
  ::close(own(file)->descriptor);
  delete own(file);
  return 0;
}

int compare(const H5FD_t* one, const H5FD_t* other) {
  const auto order = own(one)->device == own(other)->device
                         ? own(one)->inode <=> own(other)->inode
                         : own(one)->device <=> own(other)->device;
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

haddr_t get_allocated(const H5FD_t* file, H5FD_mem_t) { return own(file)->allocated; }
herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  own(file)->allocated = address;
  return 0;
}
haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return own(file)->end; }

// Behind the end there are zeros, as of the library's own drivers.
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  char* bytes = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t count = ::pread(own(file)->descriptor, bytes, size, static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      tell("pread", H5E_READERROR);
      return -1;
    }
    if (count == 0) {
      std::memset(bytes, 0, size);
      break;
    }
    bytes += count;
    address += static_cast<haddr_t>(count);
    size -= static_cast<size_t>(count);
  }
  return 0;
}

herr_t write_bytes(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

// Whoever is writing the file holds the other lock; file systems without locks have none.
herr_t lock(H5FD_t* file, hbool_t) {
  if (::flock(own(file)->descriptor, LOCK_SH | LOCK_NB) == 0 || errno == ENOSYS) return 0;
  tell("flock", H5E_CANTOPENFILE);
  return -1;
}
herr_t unlock(H5FD_t* file) {
  ::flock(own(file)->descriptor, LOCK_UN);
  return 0;
}

// As of the library's default driver, but for what shows its descriptor.
herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

// Registered again when the program has shut the library down (H5close) in between.
hid_t driver_id() {
  static hid_t id = H5I_INVALID_HID;
  if (H5Iget_type(id) == H5I_VFL) return id;
  static H5FD_class_t driver{};
  driver.name = "lacuna, reading";
  driver.maxaddr = kMaxAddress;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = get_allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = get_end;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.lock = lock;
  driver.unlock = unlock;
  id = H5FDregister(&driver);
  return id;
}

}  // namespace

void read_by_own_driver(hid_t access) { H5Pset_driver(access, driver_id(), nullptr); }

}  // namespace lacuna::hdf5
