// One layout for each pattern, made when first requested.
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/layouts/formats/block_layout.hpp"
#include "lacuna/framework/layouts/formats/nm_layout.hpp"
#include "lacuna/framework/layouts/layout.h"

namespace lacuna {

const Layout& layout_for(const PatternShape& pattern) {
  if (!pattern.is_structured()) return csr_layout();
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Layout>> layouts;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Layout>& layout = layouts[pattern.to_string()];
  if (layout == nullptr) {
    const bool has_slots = pattern.is_nm() && pattern.unit_rows() == 1;
    layout = has_slots ? make_nm_layout(pattern) : make_block_layout(pattern);
  }
  return *layout;
}

}  // namespace lacuna
