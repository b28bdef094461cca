// All datasets of an HDF5 file, group by group.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"

namespace lacuna::hdf5 {

/// See Hdf5File::datasets. *Requires* a Session, and an open file.
class Walk {
 public:
  explicit Walk(const OpenFile& file) : file_(file) {}
  std::vector<std::string> datasets();

 private:
  void visit(hid_t group, const std::string& prefix, int depth);
  /// *Errors:* DataError where the object was come upon before, or will be.
  void require_first_name(const std::string& path, hid_t object);

  const OpenFile& file_;
  std::vector<std::string> paths_;
  std::set<haddr_t> seen_;
};

}  // namespace lacuna::hdf5
