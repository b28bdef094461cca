#include "lacuna/framework/distributed/data_parallel.hpp"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/distributed/gradient_reducer.hpp"
#include "lacuna/framework/nn/tied_weight.h"

namespace lacuna {
namespace {

std::string divisors_text(int64_t number) {
  std::string text;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d != 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : d == number ? " or " : ", ", d);
  }
  return text;
}

// How often a forward pass uses the weights that other layers use too.
std::map<const Parameter*, int> used_often(Module& model) {
  std::map<const Parameter*, int> uses;
  for (const Module* module : model.modules()) {
    const auto* tied = dynamic_cast<const TiedWeight*>(module);
    if (tied == nullptr) continue;
    const auto [place, is_new] =
        uses.emplace(tied->tied_weight().get(), 1);  // the layer that has it
    ++place->second;
  }
  return uses;
}

// Open MPI sums over two or three by sending whole arrays to one and back, one after the other.
SumOrder order_of(const DataParallelOptions& options, int processes) {
  return processes < 4 ? SumOrder::Tree : options.order;
}

}  // namespace

struct DataParallel::State {
  State(Module& model, std::shared_ptr<Communicator> communicator_, DataParallelOptions options_)
      : communicator(std::move(communicator_)),
        options(options_),
        owners(options.shards, communicator == nullptr ? 1 : communicator->size()),
        reducer(std::make_shared<GradientReducer>(
            communicator != nullptr && communicator->size() > 1 ? communicator.get() : nullptr,
            owners,
            GradientReducer::Options{.bucket_floats = options.bucket_floats,
                                     .order = order_of(options, owners.processes()),
                                     .used_often = lacuna::used_often(model)})),
        parameters(model.parameters()) {}

  std::shared_ptr<Communicator> communicator;
  DataParallelOptions options;
  ShardOwners owners;
  std::shared_ptr<GradientReducer> reducer;
  std::vector<ParameterPtr> parameters;
};

void require_processes_divide(int64_t shards, int processes) {
  if (shards >= 1 && shards % processes == 0) return;
  throw ConfigError(fmt::format("{} processes cannot share {} shards equally; start {}", processes,
                                shards, divisors_text(shards)));
}

DataParallel::DataParallel(Module& model, std::shared_ptr<Communicator> communicator,
                           DataParallelOptions options) {
  require_processes_divide(options.shards, communicator == nullptr ? 1 : communicator->size());
  state_ = std::make_unique<State>(model, std::move(communicator), options);
  for (const ParameterPtr& parameter : state_->parameters) {
    parameter->set_collector(state_->reducer);
  }
}

DataParallel::~DataParallel() {
  for (const ParameterPtr& parameter : state_->parameters) parameter->set_collector(nullptr);
}

int DataParallel::rank() const {
  return state_->communicator == nullptr ? 0 : state_->communicator->rank();
}
int DataParallel::processes() const { return state_->owners.processes(); }
int64_t DataParallel::shards() const { return state_->owners.shards(); }
int64_t DataParallel::first_shard() const { return state_->owners.first(rank()); }
int64_t DataParallel::last_shard() const { return state_->owners.first(rank() + 1); }
Communicator* DataParallel::communicator() const { return state_->communicator.get(); }
double DataParallel::seconds_waited() const { return state_->reducer->seconds_waited(); }

namespace {

bool are(const std::vector<BatchShard>& shards, int64_t first, int64_t last) {
  if (static_cast<int64_t>(shards.size()) != last - first) return false;
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].index != first + static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Whether others have shards of the batch. *Errors:* StateError.
bool is_shared(const DataParallel& parallel, const std::vector<BatchShard>& shards,
               int64_t batch_shards) {
  const bool is_cut = batch_shards == parallel.shards();
  const int64_t first = is_cut ? parallel.first_shard() : 0;
  const int64_t last = is_cut ? parallel.last_shard() : batch_shards;
  if (batch_shards < 1 || batch_shards > parallel.shards() || !are(shards, first, last)) {
    throw StateError(fmt::format("a step of process {} needs the shards {} to {} of {}, in order",
                                 parallel.rank(), first, last - 1, batch_shards));
  }
  return is_cut && parallel.processes() > 1;
}

}  // namespace

DataParallel::Step::Step(DataParallel& parallel, const std::vector<BatchShard>& shards,
                         int64_t batch_shards)
    : parallel_(parallel),
      batch_(shards, is_shared(parallel, shards, batch_shards) ? parallel.communicator() : nullptr,
             parallel.state_->options.norms) {
  parallel.state_->reducer->begin(shards.front().index, shards.back().index + 1,
                                  batch_.peers() != nullptr);
}

std::vector<double> DataParallel::Step::join(std::vector<ShardValues> own) const {
  return join_shards(std::move(own), add_values, batch_.peers());
}

std::vector<double> DataParallel::join(std::vector<ShardValues> own, int64_t batch_shards) const {
  const bool is_shared = batch_shards == shards() && processes() > 1;
  return join_shards(std::move(own), add_values, is_shared ? communicator() : nullptr);
}

void DataParallel::Step::finish() { parallel_.state_->reducer->finish(); }

void require_agreement(Communicator& communicator, std::span<const Agreed> what) {
  for (const Agreed& one : what) {
    const std::vector<std::string> texts = communicator.gather_texts(one.text);
    for (size_t p = 1; p < texts.size(); ++p) {
      if (texts[p] == texts[0]) continue;
      throw StateError(
          fmt::format("the processes differ in {}: process 0 has {}, process {} has {}", one.name,
                      texts[0], p, texts[p]));
    }
  }
}

}  // namespace lacuna
