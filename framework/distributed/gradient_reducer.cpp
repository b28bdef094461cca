#include "lacuna/framework/distributed/gradient_reducer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// Of a pattern that stores zeros too only what is in it travels.
bool travels_compacted(const Parameter& parameter) {
  const Pattern& pattern = *parameter.pattern();
  return pattern.stores_every_position() && !pattern.is_dense();
}

}  // namespace

GradientReducer::GradientReducer(Communicator* communicator, const ShardOwners& owners,
                                 Options options)
    : communicator_(communicator), owners_(owners), options_(std::move(options)) {}

void GradientReducer::begin(int64_t first, int64_t last, bool is_shared) {
  first_ = first;
  last_ = last;
  is_shared_ = is_shared && communicator_ != nullptr;
  ++batch_;
  collected_.clear();
  row_sums_.begin(first, last);
  if (floats_ > 0) floats_before_ = std::exchange(floats_, 0);
}

void GradientReducer::add(Parameter& parameter, int64_t shard, Tensor gradient) {
  Collected& collected = collected_[&parameter];
  const auto local = static_cast<size_t>(shard - first_);
  collected.contributions.resize(static_cast<size_t>(last_ - first_));
  int64_t use = collected.contributions[local]++;
  if (const auto often = options_.used_often.find(&parameter); often != options_.used_often.end()) {
    collected.held.resize(collected.contributions.size());
    Tensor& held = collected.held[local];
    if (held.defined()) {
      JoinTensors()(held, std::move(gradient));
    } else {
      held = std::move(gradient);
    }
    if ((use + 1) % often->second != 0) return bring_on();
    gradient = std::exchange(held, Tensor());
    use /= often->second;
  }
  while (static_cast<int64_t>(collected.rounds.size()) <= use) collected.rounds.emplace_back();
  Round& round = collected.rounds[static_cast<size_t>(use)];
  round.sum.add({0, shard}, std::move(gradient));
  if (++round.arrived == last_ - first_) complete(parameter, round);
  bring_on();
}

void GradientReducer::add_rows(Parameter& parameter, int64_t shard, RowGradient gradient) {
  row_sums_.add(parameter, shard, std::move(gradient));
  bring_on();
}

void GradientReducer::complete(Parameter& parameter, Round& round) {
  if (!is_shared_) {
    parameter.add_gradient(round.sum.take());
    return;
  }
  std::vector<Tensor> arrays = round.sum.take_parts();
  if (travels_compacted(parameter)) {
    for (Tensor& array : arrays) array = parameter.compacted(array);
  }
  const int64_t floats = arrays.front().numel();
  filling_.arrays.resize(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) filling_.arrays[i].push_back(std::move(arrays[i]));
  filling_.entries.push_back({&parameter, floats});
  filling_.floats += floats;
  floats_ += floats;
  if (filling_.floats >= full_bucket()) launch();
}

// The same in all processes, for they send the same. A bucket takes a message to each of them, so
// that it is worth that only from some size on.
int64_t GradientReducer::full_bucket() const {
  constexpr int64_t kBuckets = 8, kLeast = int64_t{1} << 12, kOfProcess = int64_t{1} << 10;
  if (floats_before_ == 0) return options_.bucket_floats;
  const int64_t least = std::max(kLeast, kOfProcess * owners_.processes());
  return std::min(options_.bucket_floats, std::max(floats_before_ / kBuckets, least));
}

int GradientReducer::next_tag() {
  tag_ = tag_ + 3 > communicator_->last_tag() ? 0 : tag_ + 2;
  return tag_;
}

void GradientReducer::launch() {
  if (filling_.entries.empty()) return;
  Bucket bucket = std::exchange(filling_, {});
  std::vector<Tensor> own;
  for (std::vector<Tensor>& arrays : bucket.arrays) {
    if (arrays.size() == 1) {
      own.push_back(arrays.front().viewed_as(Shape{bucket.floats}));
      continue;
    }
    Tensor joined = Tensor::empty(Shape{bucket.floats});
    auto into = joined.mutable_storage().begin();
    for (const Tensor& array : arrays) into = std::ranges::copy(array.storage(), into).out;
    own.push_back(std::move(joined));
  }
  bucket.arrays.clear();
  bucket.sum = std::make_unique<ArraySum>(*communicator_, owners_, std::move(own), next_tag(),
                                          options_.order);
  under_way_.push_back(std::move(bucket));
}

// MPI makes headway while it is called.
void GradientReducer::bring_on() {
  for (Bucket& bucket : under_way_) bucket.sum->is_done();
}

void GradientReducer::deliver(const Bucket& bucket) const {
  size_t at = 0;
  for (const Entry& entry : bucket.entries) {
    const auto floats = static_cast<size_t>(entry.floats);
    const std::span<const float> values = bucket.sum->total().storage().subspan(at, floats);
    at += floats;
    Parameter& parameter = *entry.parameter;
    if (travels_compacted(parameter)) {
      parameter.add_gradient(parameter.expanded(Tensor::from(Shape{entry.floats}, values)));
    } else {
      parameter.add_gradient(Tensor::from(parameter.pattern()->stored_shape(), values));
    }
  }
}

void GradientReducer::finish() {
  for (const auto& [parameter, collected] : collected_) {
    const auto often = options_.used_often.find(parameter);
    const int64_t uses = often == options_.used_often.end() ? 1 : often->second;
    const auto& counts = collected.contributions;
    const bool is_whole = std::ranges::all_of(
        counts, [&](int64_t n) { return n == counts.front() && n % uses == 0; });
    if (is_whole) continue;
    throw StateError(
        fmt::format("parameter '{}' has gradients of only some shards of the batch, which cannot "
                    "be summed over processes; set train.shards: 0",
                    parameter->name()));
  }
  collected_.clear();
  launch();
  const auto start = std::chrono::steady_clock::now();
  for (Bucket& bucket : under_way_) {
    while (!bucket.sum->is_done()) bring_on();
    deliver(bucket);
  }
  under_way_.clear();
  row_sums_.finish(is_shared_ ? communicator_ : nullptr, owners_, [this] { return next_tag(); });
  seconds_waited_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void GradientReducer::sum(TensorSum own, bool was_shared, std::span<float> total) {
  if (!was_shared) {
    std::ranges::copy(own.take().storage(), total.begin());
    return;
  }
  ArraySum sum(*communicator_, owners_, own.take_parts(), next_tag(), options_.order);
  sum.wait();
  std::ranges::copy(sum.total().storage(), total.begin());
}

void GradientReducer::sum_scattered(std::vector<TensorSum> own, bool was_shared,
                                    std::span<float> total) {
  const auto here = static_cast<size_t>(communicator_ == nullptr ? 0 : communicator_->rank());
  TensorSum sum{JoinTensors()};
  if (was_shared) {
    std::vector<std::vector<Tensor>> sent, received(own.size());
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (size_t p = 0; p < own.size(); ++p) {
      if (p == here) {
        sent.emplace_back();
        continue;
      }
      sent.push_back(own[p].take_parts());
      for (const Tensor& part : sent.back()) out.push_back({static_cast<int>(p), part.storage()});
      for (size_t i = 0; !total.empty() && i < owners_.nodes(static_cast<int>(p)).size(); ++i) {
        Tensor& room =
            received[p].emplace_back(Tensor::empty(Shape{static_cast<int64_t>(total.size())}));
        in.push_back({static_cast<int>(p), room.mutable_storage()});
      }
    }
    communicator_->start(next_tag(), out, in)->wait();
    for (size_t p = 0; p < own.size(); ++p) {
      for (size_t i = 0; i < received[p].size(); ++i) {
        sum.add(owners_.nodes(static_cast<int>(p))[i], std::move(received[p][i]));
      }
    }
  }
  if (total.empty()) return;
  for (const auto& [first, part] : own[here].parts()) sum.add(part.first, part.second);
  std::ranges::copy(sum.take().storage(), total.begin());
}

}  // namespace lacuna
