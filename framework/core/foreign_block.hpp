// How foreign memory comes to be a Buffer's: only tensor_over and buffer.cpp know it.
#pragma once

#include <memory>
#include <utility>

namespace lacuna::internal {

/// While it lives, a Buffer that this thread makes is over `data` and lets `owner` go at its end.
class ForeignBlock {
 public:
  ForeignBlock(void* data, std::shared_ptr<const void> owner);
  ~ForeignBlock();
  ForeignBlock(const ForeignBlock&) = delete;
  ForeignBlock& operator=(const ForeignBlock&) = delete;

  void* data() const { return data_; }
  std::shared_ptr<const void> take_owner() { return std::move(owner_); }

 private:
  void* data_;
  std::shared_ptr<const void> owner_;
};

}  // namespace lacuna::internal
