// What a message costs between processes, as training sends it: the numbers of
// docs/development/scaling.md's model. Started by mpirun; process 0 prints them as JSON. --tiny:
// few rounds, to see that it runs.
// --exchange FLOATS: also a step's exchange of so many, in the buckets that the trainer makes of
// them, while nothing is computed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lacuna/framework/distributed/communicator.h"

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of the median of so many calls; `before` each of them something that does not count.
double median_of(
    int rounds, const std::function<void()>& call, const std::function<void()>& before = [] {}) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    before();
    const Clock::time_point start = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

// As the trainer waits: it asks again and again, and so brings messages on.
void finish(std::unique_ptr<PendingMessages> messages) {
  while (!messages->is_done()) {
  }
}

class Network {
 public:
  Network(Communicator& job, int rounds) : job_(job), rounds_(rounds) {}

  // Half a round trip of a number between the first two processes.
  double latency() {
    const int other = 1 - job_.rank();
    float value = 0.0f;
    job_.gather({});
    if (job_.rank() > 1) return 0.0;
    const double both_ways = median_of(rounds_, [&] {
      const Communicator::Outgoing out{other, {&value, 1}};
      float arrived = 0.0f;
      const Communicator::Incoming in{other, {&arrived, 1}};
      if (job_.rank() == 0) finish(job_.start(0, {&out, 1}, {}));
      finish(job_.start(0, {}, {&in, 1}));
      if (job_.rank() == 1) finish(job_.start(0, {&out, 1}, {}));
    });
    return both_ways / 2;
  }

  // So many messages to each of the others, of that many floats, and as many from each.
  double exchange(int messages, int64_t floats) {
    const auto size = static_cast<size_t>(floats);
    const auto count = static_cast<size_t>(messages) * static_cast<size_t>(job_.size());
    std::vector<float> sent(size, 1.0f), received(size * count);
    const auto exchange = [&] {
      std::vector<Communicator::Outgoing> out;
      std::vector<Communicator::Incoming> in;
      for (int m = 0; m < messages; ++m) {
        for (int p = 0; p < job_.size(); ++p) {
          if (p == job_.rank()) continue;
          out.push_back({p, sent});
          const auto place = static_cast<size_t>(m * job_.size() + p) * size;
          in.push_back({p, {received.data() + place, size}});
        }
      }
      finish(job_.start(1, out, in));
    };
    return median_of(rounds_, exchange, [&] { job_.gather({}); });  // all at once
  }

  // Everybody's parts of all buckets, and their sums back.
  double step(int buckets, int64_t floats) {
    const int64_t part = std::max<int64_t>(floats / buckets / job_.size(), 1);
    return 2.0 * exchange(buckets, part);
  }

  // Few numbers of each, joined as those of a batch's shards are.
  double gather() {
    return median_of(rounds_, [&] {
      std::vector<ShardValues> own{{job_.rank(), std::vector<double>(8, 1.0)}};
      join_shards(std::move(own), add_values, &job_);
    });
  }

 private:
  Communicator& job_;
  int rounds_;
};

// Bytes a second that one thread reads and writes, of arrays that no cache holds.
double memory_rate(int rounds) {
  const std::vector<float> from(size_t{1} << 24, 1.0f);
  std::vector<float> into(from.size());
  const double seconds =
      median_of(rounds, [&] { std::copy(from.begin(), from.end(), into.begin()); });
  return 2.0 * static_cast<double>(from.size() * sizeof(float)) / seconds;
}

// As GradientReducer fills them, where tensors are small.
int buckets_of(int64_t floats, int64_t processes) {
  const int64_t most = std::max(int64_t{1} << 16, (int64_t{1} << 14) * processes);
  const int64_t least = std::max(int64_t{1} << 12, (int64_t{1} << 10) * processes);
  const int64_t bucket = std::min(most, std::max(floats / 8, least));
  return static_cast<int>(std::max<int64_t>((floats + bucket - 1) / bucket, 1));
}

int run(bool is_tiny, int64_t step_floats) {
  const std::shared_ptr<Communicator> job = join_job();
  if (job == nullptr || job->size() < 2) {
    std::fputs(
        "usage: mpirun -np N bench_network [--tiny] [--exchange FLOATS], of 2 processes at least\n",
        stderr);
    return 2;
  }
  Network network(*job, is_tiny ? 5 : 1001);
  const double latency = network.latency(), gather = network.gather();
  const int others = job->size() - 1;
  constexpr int kMessages = 33;
  const double one = network.exchange(1, 1), many = network.exchange(kMessages, 1);
  const double overhead = std::max(0.0, (many - one) / (2.0 * (kMessages - 1) * others));
  constexpr int64_t kFloats = int64_t{1} << 18;
  Network large(*job, is_tiny ? 3 : 51);
  const double rate = 4.0 * static_cast<double>(kFloats * others) / large.exchange(1, kFloats);
  const double memory = memory_rate(is_tiny ? 1 : 11);
  const int buckets = buckets_of(step_floats, job->size());
  const double step = step_floats > 0 ? large.step(buckets, step_floats) : 0.0;
  if (job->rank() == 0) {
    std::printf(
        "{\"processes\": %d, \"latency\": %.4g, \"overhead\": %.4g, \"gather\": %.4g, "
        "\"bytes_per_second\": %.4g, \"memory_bytes_per_second\": %.4g",
        job->size(), latency, overhead, gather, rate, memory);
    if (step_floats > 0) std::printf(", \"exchange\": %.4g, \"buckets\": %d", step, buckets);
    std::puts("}");
    std::fflush(stdout);
  }
  job->leave();
  return 0;
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  try {
    bool is_tiny = false;
    int64_t floats = 0;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--tiny") == 0) is_tiny = true;
      if (std::strcmp(argv[i], "--exchange") == 0 && i + 1 < argc) {
        floats = std::strtoll(argv[++i], nullptr, 10);
      }
    }
    return lacuna::run(is_tiny, floats);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
