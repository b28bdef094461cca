#include "lacuna/framework/distributed/row_sums.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

// Messages are of floats, whose bits MPI does not touch: a row's number is two of them.
std::vector<float> to_words(std::span<const int64_t> rows) {
  std::vector<float> words;
  words.reserve(2 * rows.size());
  for (const int64_t row : rows) {
    const auto bits = static_cast<uint64_t>(row);
    words.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    words.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits >> 32)));
  }
  return words;
}

std::vector<int64_t> from_words(std::span<const float> words) {
  std::vector<int64_t> rows;
  rows.reserve(words.size() / 2);
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    rows.push_back(static_cast<int64_t>(std::bit_cast<uint32_t>(words[i]) |
                                        uint64_t{std::bit_cast<uint32_t>(words[i + 1])} << 32));
  }
  return rows;
}

// One node's rows on their way.
struct Message {
  std::vector<float> words;
  Tensor values;
};

}  // namespace

void RowSums::begin(int64_t first, int64_t last) {
  first_ = first;
  last_ = last;
  collected_.clear();
}

void RowSums::add(Parameter& parameter, int64_t shard, RowGradient gradient) {
  Collected& collected = collected_[parameter.name()];
  collected.parameter = &parameter;
  collected.contributions.resize(static_cast<size_t>(last_ - first_));
  ++collected.contributions[static_cast<size_t>(shard - first_)];
  const auto [place, is_new] = collected.by_shard.try_emplace(shard);
  if (is_new) {
    place->second = std::move(gradient);
  } else {
    JoinRowGradients()(place->second, std::move(gradient));
  }
}

void RowSums::finish(Communicator* communicator, const ShardOwners& owners,
                     const std::function<int()>& next_tag) {
  for (const auto& [name, collected] : collected_) {
    const std::vector<int64_t>& counts = collected.contributions;
    if (std::ranges::all_of(counts, [&](int64_t n) { return n == counts.front(); })) continue;
    throw StateError(
        fmt::format("parameter '{}' has gradients of only some shards of the batch, which cannot "
                    "be summed over processes; set train.shards: 0",
                    name));
  }
  for (auto& [name, collected] : collected_) {
    finish_one(collected, communicator, owners, next_tag);
  }
  collected_.clear();
}

void RowSums::finish_one(Collected& collected, Communicator* communicator,
                         const ShardOwners& owners, const std::function<int()>& next_tag) const {
  Parameter& parameter = *collected.parameter;
  Sum own{JoinRowGradients()};
  for (auto& [shard, gradient] : collected.by_shard) own.add({0, shard}, std::move(gradient));
  if (communicator == nullptr) return parameter.add_row_gradient(own.take());

  const int64_t columns = matrix_columns(parameter.shape());
  std::vector<Message> sent;
  std::vector<int64_t> sizes;
  Sum total{JoinRowGradients()};
  for (const auto& [first, part] : own.parts()) {
    sent.push_back({to_words(part.second.rows), part.second.values});
    sizes.push_back(static_cast<int64_t>(part.second.rows.size()));
  }
  const std::vector<std::vector<int64_t>> all_sizes = communicator->gather_numbers(sizes);
  std::vector<std::vector<Message>> received(all_sizes.size());
  std::vector<Communicator::Outgoing> words_out, values_out;
  std::vector<Communicator::Incoming> words_in, values_in;
  for (int p = 0; p < communicator->size(); ++p) {
    if (p == communicator->rank()) continue;
    for (const Message& message : sent) {
      if (message.words.empty()) continue;
      words_out.push_back({p, message.words});
      values_out.push_back({p, message.values.storage()});
    }
    std::vector<Message>& room = received[static_cast<size_t>(p)];
    room.resize(all_sizes[static_cast<size_t>(p)].size());
    for (size_t i = 0; i < room.size(); ++i) {
      const int64_t rows = all_sizes[static_cast<size_t>(p)][i];
      room[i] = {std::vector<float>(static_cast<size_t>(2 * rows)),
                 Tensor::empty(Shape{rows, columns})};
      if (rows == 0) continue;
      words_in.push_back({p, room[i].words});
      values_in.push_back({p, room[i].values.mutable_storage()});
    }
  }
  const int tag = next_tag();
  const auto words = communicator->start(tag, words_out, words_in);
  const auto values = communicator->start(tag + 1, values_out, values_in);
  words->wait();
  values->wait();
  for (int p = 0; p < communicator->size(); ++p) {
    const std::vector<ShardNode>& nodes = owners.nodes(p);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (p == communicator->rank()) continue;
      Message& message = received[static_cast<size_t>(p)][i];
      total.add(nodes[i], {from_words(message.words), std::move(message.values)});
    }
  }
  for (const auto& [first, part] : own.parts()) total.add(part.first, part.second);
  parameter.add_row_gradient(total.take());
}

}  // namespace lacuna
