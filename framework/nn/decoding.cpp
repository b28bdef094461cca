#include "lacuna/framework/nn/decoding.h"

#include <utility>

namespace lacuna {
namespace {

thread_local DecodingCache* innermost = nullptr;

}  // namespace

Decoding::Decoding(DecodingCache& cache) : saved_(std::exchange(innermost, &cache)) {}
Decoding::~Decoding() { innermost = saved_; }

DecodingCache* decoding_cache() { return innermost; }

}  // namespace lacuna
