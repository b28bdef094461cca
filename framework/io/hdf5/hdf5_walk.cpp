// Going through all groups of an HDF5 file.
#include "lacuna/framework/io/hdf5/hdf5_walk.hpp"

#include <fmt/core.h>

namespace lacuna::hdf5 {

std::vector<std::string> Walk::datasets() {
  const Id root(H5Oopen(file_.file, "/", H5P_DEFAULT));
  require_first_name("/", root);
  visit(root, "", 0);
  return std::move(paths_);
}

// Goes on from the group itself and not from the root, so that depth costs nothing.
void Walk::visit(hid_t group, const std::string& prefix, int depth) {
  std::vector<std::pair<std::string, H5L_type_t>> links;
  const herr_t result = H5Literate(
      group, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t* link, void* data) -> herr_t {
        static_cast<decltype(links)*>(data)->emplace_back(name, link->type);
        return 0;
      },
      &links);
  if (result < 0) file_.data_error(prefix.empty() ? "/" : prefix, library_reason());
  for (const auto& [name, type] : links) {
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    if (type != H5L_TYPE_HARD) {
      file_.data_error(path, "it is a link to an object outside this file");
    }
    const Id object(H5Oopen(group, name.c_str(), H5P_DEFAULT));
    if (object < 0) file_.data_error(path, library_reason());
    require_first_name(path, object);
    if (H5Iget_type(object) == H5I_DATASET) {
      paths_.push_back(path);
    } else if (H5Iget_type(object) != H5I_GROUP) {
      file_.data_error(path, "expected a dataset or a group");
    } else if (depth >= kMostHdf5Groups) {
      file_.data_error(prefix.substr(0, 60) + "…",
                       fmt::format("groups nest deeper than {}", kMostHdf5Groups));
    } else {
      visit(object, path, depth + 1);
    }
  }
}

void Walk::require_first_name(const std::string& path, hid_t object) {
  H5O_info_t facts{};
  if (H5Oget_info2(object, &facts, H5O_INFO_BASIC) < 0) file_.data_error(path, library_reason());
  if (facts.rc > 1 || !seen_.insert(facts.addr).second) {
    file_.data_error(path,
                     "it has several names in the file (hard links), which lacuna never writes");
  }
}

}  // namespace lacuna::hdf5
