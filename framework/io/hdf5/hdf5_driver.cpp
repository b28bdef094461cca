// The file driver that HDF5 writes through: plain pwrite, with failures kept for us.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"

namespace lacuna::hdf5 {
namespace {

constexpr haddr_t kMaxAddress = (haddr_t{1} << 62) - 1;

struct Access {
  Sink* sink;
};

// The library casts between its H5FD_t and this, which therefore begins with one.
struct DriverFile {
  H5FD_t base;
  Sink* sink;
  haddr_t allocated;  // end of what the library has handed out ("eoa")
  haddr_t end;        // end of the file ("eof")
};

DriverFile* own(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* own(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const Access*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) DriverFile{};
  if (file == nullptr) return nullptr;
  file->sink = info->sink;
  return &file->base;
}

herr_t close_file(H5FD_t* file) {
  delete own(file);
  return 0;
}

haddr_t get_allocated(const H5FD_t* file, H5FD_mem_t) { return own(file)->allocated; }
herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  own(file)->allocated = address;
  return 0;
}
haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return own(file)->end; }

// Everything between the ends of reading and writing is zero. Reads are not expected: what is
// written stays in the metadata cache (see use_sink).
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* buffer) {
  std::memset(buffer, 0, size);
  const ssize_t count =
      ::pread(own(file)->sink->descriptor, buffer, size, static_cast<off_t>(address));
  return count < 0 ? -1 : 0;
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

herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  DriverFile& mine = *own(file);
  if (mine.allocated == mine.end) return 0;
  if (mine.sink->error == 0 &&
      ::ftruncate(mine.sink->descriptor, static_cast<off_t>(mine.allocated)) != 0) {
    mine.sink->error = errno;
  }
  mine.end = mine.allocated;
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

// Registered again when the program has shut the library down (H5close) in between.
hid_t driver_id() {
  static hid_t id = H5I_INVALID_HID;
  if (H5Iget_type(id) == H5I_VFL) return id;
  static H5FD_class_t driver{};
  driver.name = "lacuna";
  driver.maxaddr = kMaxAddress;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Access);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = get_allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = get_end;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.truncate = truncate_file;
  id = H5FDregister(&driver);
  return id;
}

}  // namespace

void use_sink(hid_t access, Sink& sink) {
  const Access info{&sink};
  H5Pset_driver(access, driver_id(), &info);
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
