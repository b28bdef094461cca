// The file drivers that HDF5 reads and writes through. Reading: plain pread, with a close that
// cannot fail. Writing: plain pwrite, with failures kept for us.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <compare>
#include <cstring>
#include <new>

#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"

namespace lacuna::hdf5 {
namespace {

// The library casts between its H5FD_t and this, which therefore begins with one.
struct DriverFile {
  H5FD_t base;
  int descriptor;
  haddr_t allocated;  // end of what the library uses ("eoa")
  haddr_t end;        // end of the file ("eof")
  Sink* sink;         // of a file that is written, whose descriptor is the sink's
  dev_t device;       // of a file that is read
  ino_t inode;
};

DriverFile* own(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* own(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

// For library_reason().
void tell(const char* call, hid_t minor) {
  H5Epush2(H5E_DEFAULT, __FILE__, call, __LINE__, H5E_ERR_CLS, H5E_IO, minor, "%s",
           std::strerror(errno));
}

haddr_t get_allocated(const H5FD_t* file, H5FD_mem_t) { return own(file)->allocated; }
herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  own(file)->allocated = address;
  return 0;
}
haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return own(file)->end; }

// After the end there are zeros, as in the library's own drivers.
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

// What both drivers have in common.
H5FD_class_t driver_named(const char* name) {
  H5FD_class_t driver{};
  driver.name = name;
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.get_eoa = get_allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = get_end;
  driver.read = read_bytes;
  return driver;
}

// Files that links lead to are opened by their names, too.
H5FD_t* open_to_read(const char* name, unsigned flags, hid_t, haddr_t) {
  if ((flags & H5F_ACC_RDWR) != 0) return nullptr;
  const int descriptor = ::open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    tell("open", H5E_CANTOPENFILE);
    return nullptr;
  }
  struct stat facts {};
  const bool is_file = ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  auto* file = is_file ? new (std::nothrow) DriverFile{} : nullptr;
  if (file == nullptr) {
    ::close(descriptor);
    return nullptr;
  }
  file->descriptor = descriptor;
  file->end = static_cast<haddr_t>(facts.st_size);
  file->device = facts.st_dev;
  file->inode = facts.st_ino;
  return &file->base;
}

herr_t close_read(H5FD_t* file) {
  ::close(own(file)->descriptor);
  delete own(file);
  return 0;
}

int compare_read(const H5FD_t* one, const H5FD_t* other) {
  const auto order = own(one)->device == own(other)->device
                         ? own(one)->inode <=> own(other)->inode
                         : own(one)->device <=> own(other)->device;
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

herr_t refuse_bytes(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

// Whoever is writing the file holds the other lock; file systems without locks have none.
herr_t lock_read(H5FD_t* file, hbool_t) {
  if (::flock(own(file)->descriptor, LOCK_SH | LOCK_NB) == 0 || errno == ENOSYS) return 0;
  tell("flock", H5E_CANTOPENFILE);
  return -1;
}
herr_t unlock_read(H5FD_t* file) {
  ::flock(own(file)->descriptor, LOCK_UN);
  return 0;
}

// As of the library's default driver, but for what shows its descriptor.
herr_t query_read(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

struct Access {
  Sink* sink;
};

H5FD_t* open_to_write(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const Access*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) DriverFile{};
  if (file == nullptr) return nullptr;
  file->sink = info->sink;
  file->descriptor = info->sink->descriptor;
  return &file->base;
}

herr_t close_written(H5FD_t* file) {
  delete own(file);
  return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size,
                   const void* buffer) {
  Sink& sink = *own(file)->sink;
  const char* bytes = static_cast<const char*>(buffer);
  own(file)->end = std::max(own(file)->end, address + size);
  while (size > 0 && sink.error == 0) {
    const ssize_t count = ::pwrite(sink.descriptor, bytes, size, static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      sink.error = count < 0 ? errno : ENOSPC;
      break;
    }
    bytes += count;
    address += static_cast<haddr_t>(count);
    size -= static_cast<size_t>(count);
  }
  return 0;
}

herr_t truncate_written(H5FD_t* file, hid_t, hbool_t) {
  DriverFile& mine = *own(file);
  if (mine.allocated == mine.end) return 0;
  if (mine.sink->error == 0 &&
      ::ftruncate(mine.descriptor, static_cast<off_t>(mine.allocated)) != 0) {
    mine.sink->error = errno;
  }
  mine.end = mine.allocated;
  return 0;
}

herr_t query_written(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

// Drivers are registered again when the program has shut the library down (H5close) in between.

hid_t reading_driver() {
  static hid_t id = H5I_INVALID_HID;
  if (H5Iget_type(id) == H5I_VFL) return id;
  static H5FD_class_t driver = driver_named("lacuna, reading");
  driver.open = open_to_read;
  driver.close = close_read;
  driver.cmp = compare_read;
  driver.query = query_read;
  driver.write = refuse_bytes;
  driver.lock = lock_read;
  driver.unlock = unlock_read;
  return id = H5FDregister(&driver);
}

hid_t writing_driver() {
  static hid_t id = H5I_INVALID_HID;
  if (H5Iget_type(id) == H5I_VFL) return id;
  static H5FD_class_t driver = driver_named("lacuna");
  driver.fapl_size = sizeof(Access);
  driver.open = open_to_write;
  driver.close = close_written;
  driver.query = query_written;
  driver.write = write_bytes;
  driver.truncate = truncate_written;
  return id = H5FDregister(&driver);
}

}  // namespace

void read_by_own_driver(hid_t access) { H5Pset_driver(access, reading_driver(), nullptr); }

void use_sink(hid_t access, Sink& sink) {
  const Access info{&sink};
  H5Pset_driver(access, writing_driver(), &info);
  // Metadata stays in memory until the file is closed (some hundred bytes for each dataset), so
  // that the library never reads back what a failed write has not stored.
  H5AC_cache_config_t cache{};
  cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  H5Pget_mdc_config(access, &cache);
  cache.evictions_enabled = false;
  cache.incr_mode = H5C_incr__off;
  cache.flash_incr_mode = H5C_flash_incr__off;
  cache.decr_mode = H5C_decr__off;
  H5Pset_mdc_config(access, &cache);
}

}  // namespace lacuna::hdf5
