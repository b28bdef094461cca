#include "lacuna/framework/distributed/array_sum.hpp"

#include <algorithm>
#include <utility>

namespace lacuna {

ShardOwners::ShardOwners(int64_t shards, int processes)
    : shards_(shards), nodes_(static_cast<size_t>(processes)) {
  for (int p = 0; p < processes; ++p) {
    nodes_[static_cast<size_t>(p)] = shard_nodes(first(p), first(p + 1));
  }
}

ArraySum::ArraySum(Communicator& communicator, const ShardOwners& owners, std::vector<Tensor> own,
                   int tag, SumOrder order)
    : communicator_(communicator),
      owners_(owners),
      tag_(tag),
      total_(Tensor::empty(own.front().shape())),
      own_(std::move(own)),
      others_(static_cast<size_t>(communicator.size())) {
  if (order == SumOrder::Tree) {
    send_parts();
    return;
  }
  for (size_t i = 1; i < own_.size(); ++i) JoinTensors()(own_.front(), std::move(own_[i]));
  own_.resize(1);
  has_added_ = true;
  messages_ = communicator_.start_sum(own_.front().storage(), total_.mutable_storage());
}

// To each process its part.
void ArraySum::send_parts() {
  const Part mine = part_of(communicator_.rank());
  std::vector<Communicator::Outgoing> sent;
  std::vector<Communicator::Incoming> received;
  for (int p = 0; p < communicator_.size(); ++p) {
    if (p == communicator_.rank()) continue;
    const Part part = part_of(p);
    for (const Tensor& array : own_) {
      sent.push_back({p, array.storage().subspan(static_cast<size_t>(part.begin),
                                                 static_cast<size_t>(part.size))});
    }
    for (size_t node = 0; node < owners_.nodes(p).size(); ++node) {
      Tensor& room = others_[static_cast<size_t>(p)].emplace_back(Tensor::empty(Shape{mine.size}));
      received.push_back({p, room.mutable_storage()});
    }
  }
  messages_ = communicator_.start(tag_, sent, received);
}

ArraySum::Part ArraySum::part_of(int process) const {
  const ExampleRange range = shard_examples(process, communicator_.size(), total_.numel());
  return {range.first, range.count};
}

// This process's part is there from everybody: added up, it goes to everybody.
void ArraySum::add_up() {
  const int rank = communicator_.rank();
  const Part mine = part_of(rank);
  TensorSum sum{JoinTensors()};
  for (int p = 0; p < communicator_.size(); ++p) {
    for (size_t i = 0; i < owners_.nodes(p).size(); ++i) {
      const ShardNode node = owners_.nodes(p)[i];
      if (p != rank) {
        sum.add(node, std::move(others_[static_cast<size_t>(p)][i]));
        continue;
      }
      sum.add(node, Tensor::from(Shape{mine.size},
                                 own_[i].storage().subspan(static_cast<size_t>(mine.begin),
                                                           static_cast<size_t>(mine.size))));
    }
  }
  const Tensor added = sum.take();
  const std::span<float> all = total_.mutable_storage();
  const auto place = [&](const Part& part) {
    return all.subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.size));
  };
  std::ranges::copy(added.storage(), place(mine).begin());
  std::vector<Communicator::Outgoing> sent;
  std::vector<Communicator::Incoming> received;
  for (int p = 0; p < communicator_.size(); ++p) {
    if (p == rank) continue;
    sent.push_back({p, place(mine)});
    received.push_back({p, place(part_of(p))});
  }
  messages_ = communicator_.start(tag_ + 1, sent, received);
  own_.clear();
  others_.clear();
  has_added_ = true;
}

bool ArraySum::is_done() {
  if (messages_ == nullptr) return true;
  if (!messages_->is_done()) return false;
  if (!has_added_) {
    add_up();
    if (!messages_->is_done()) return false;
  }
  messages_.reset();
  return true;
}

void ArraySum::wait() {
  while (messages_ != nullptr) {
    messages_->wait();
    is_done();
  }
}

}  // namespace lacuna
