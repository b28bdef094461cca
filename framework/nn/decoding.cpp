#include "lacuna/framework/nn/decoding.h"

#include <utility>

namespace lacuna {
namespace {

thread_local DecodingCache* innermost_cache = nullptr;

}  // namespace

Decoding::Decoding(DecodingCache& cache) : saved_(std::exchange(innermost_cache, &cache)) {}
Decoding::~Decoding() { innermost_cache = saved_; }

DecodingCache* decoding_cache() { return innermost_cache; }

}  // namespace lacuna
