// The communicator over MPI: the one source that knows it. It is a plugin of its own
// (liblacuna_mpi), loaded where a launcher has started the process, so that no other run of lacuna
// loads MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/distributed/communicator.h"

namespace lacuna {
namespace {

class MpiMessages final : public PendingMessages {
 public:
  explicit MpiMessages(std::vector<MPI_Request> requests) : requests_(std::move(requests)) {}
  ~MpiMessages() override { MpiMessages::wait(); }

  bool is_done() override {
    int done = 1;
    MPI_Testall(count(), requests_.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  }
  void wait() override { MPI_Waitall(count(), requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  int count() const { return static_cast<int>(requests_.size()); }

  std::vector<MPI_Request> requests_;
};

// An error within MPI ends the job: its default handler does.
class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    get_around_file_limit();
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (provided < MPI_THREAD_FUNNELED) {
      throw StateError("this MPI library does not support threads (MPI_THREAD_FUNNELED)");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_dup(MPI_COMM_WORLD, &arrays_);
    MPI_Comm_dup(MPI_COMM_WORLD, &numbers_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<PendingMessages> start(int tag, std::span<const Outgoing> sent,
                                         std::span<const Incoming> received) override {
    std::vector<MPI_Request> requests;
    for (const Incoming& in : received) {
      for (size_t at = 0; at < in.into.size(); at += kMost) {
        const size_t count = std::min(kMost, in.into.size() - at);
        MPI_Irecv(in.into.data() + at, static_cast<int>(count), MPI_FLOAT, in.from, tag, arrays_,
                  &requests.emplace_back());
      }
    }
    for (const Outgoing& out : sent) {
      for (size_t at = 0; at < out.values.size(); at += kMost) {
        const size_t count = std::min(kMost, out.values.size() - at);
        MPI_Isend(out.values.data() + at, static_cast<int>(count), MPI_FLOAT, out.to, tag, arrays_,
                  &requests.emplace_back());
      }
      bytes_sent_ += static_cast<int64_t>(out.values.size() * sizeof(float));
    }
    return std::make_unique<MpiMessages>(std::move(requests));
  }

  std::unique_ptr<PendingMessages> start_sum(std::span<const float> own,
                                             std::span<float> total) override {
    std::vector<MPI_Request> requests;
    for (size_t at = 0; at < own.size(); at += kMost) {
      const size_t count = std::min(kMost, own.size() - at);
      MPI_Iallreduce(own.data() + at, total.data() + at, static_cast<int>(count), MPI_FLOAT,
                     MPI_SUM, arrays_, &requests.emplace_back());
    }
    bytes_sent_ += 2 * static_cast<int64_t>(own.size_bytes()) * (size_ - 1) / size_;
    return std::make_unique<MpiMessages>(std::move(requests));
  }

  int last_tag() const override { return 32767; }  // what the standard promises

  std::vector<std::vector<double>> gather(std::span<const double> own) override {
    return gather_values(own, bytes_gathered_);
  }

  std::vector<std::vector<int64_t>> gather_numbers(std::span<const int64_t> own) override {
    return gather_values(own, bytes_sent_);
  }

  void swap(int other, std::span<const double> own, std::span<double> others) override {
    const auto count = static_cast<int>(own.size());
    MPI_Sendrecv(own.data(), count, MPI_DOUBLE, other, 0, others.data(), count, MPI_DOUBLE, other,
                 0, numbers_, MPI_STATUS_IGNORE);
    bytes_gathered_ += static_cast<int64_t>(own.size_bytes());
  }

  std::vector<std::string> gather_texts(const std::string& own) override {
    const int length = static_cast<int>(own.size());
    std::vector<int> lengths(static_cast<size_t>(size_)), places;
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int total = 0;
    for (const int one : lengths) {
      places.push_back(total);
      total += one;
    }
    std::string bytes(static_cast<size_t>(total), '\0');
    MPI_Allgatherv(own.data(), length, MPI_BYTE, bytes.data(), lengths.data(), places.data(),
                   MPI_BYTE, MPI_COMM_WORLD);
    std::vector<std::string> texts;
    for (size_t i = 0; i < lengths.size(); ++i) {
      texts.push_back(
          bytes.substr(static_cast<size_t>(places[i]), static_cast<size_t>(lengths[i])));
    }
    return texts;
  }

  std::string from_first(const std::string& bytes) override {
    uint64_t length = bytes.size();
    MPI_Bcast(&length, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    std::string all = rank_ == 0 ? bytes : std::string(length, '\0');
    for (size_t at = 0; at < all.size(); at += kMost) {
      const size_t count = std::min(kMost, all.size() - at);
      MPI_Bcast(all.data() + at, static_cast<int>(count), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    return all;
  }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::abort();
  }

  void leave() override {
    int ended = 0;
    MPI_Finalized(&ended);
    if (ended != 0) return;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&arrays_);
    MPI_Comm_free(&numbers_);
    MPI_Finalize();
  }

  int64_t bytes_sent() const override { return bytes_sent_; }
  int64_t bytes_gathered() const override { return bytes_gathered_; }

 private:
  // Counts of MPI are ints: larger arrays go in pieces.
  static constexpr size_t kMost = size_t{1} << 28;

  // What processes tell each other at the start Open MPI 4 keeps in files of shared memory, of some
  // megabytes. Where files may not grow so large (ulimit -f), mpirun fails to make them when a
  // process asks for one, ends that process, and then waits for ever. Asked by messages it does
  // not.
  static void get_around_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    ::setenv("PMIX_MCA_gds", "hash", 0);
  }

  // By doubling, for any number of processes: each has its own values first, then those of the next
  // one too, of the next two, the next four, …, which it takes from the process where they begin.
  // Nobody knows how many will come, so that their counts stand before them and the receiver asks
  // MPI how long a message is: ⌈log₂ N⌉ messages, none longer than its content.
  template <class T>
  std::vector<std::vector<T>> gather_values(std::span<const T> own, int64_t& bytes) {
    static_assert(sizeof(T) == sizeof(uint64_t));
    std::vector<std::vector<T>> from_own_on{{own.begin(), own.end()}};
    for (int have = 1; have < size_; have *= 2) {
      const int count = std::min(have, size_ - have);
      const std::vector<uint64_t> sent =
          packed<T>({from_own_on.data(), static_cast<size_t>(count)});
      const std::vector<uint64_t> received = exchange_around(have, sent);
      unpack(received, count, from_own_on);
      bytes += static_cast<int64_t>(sent.size() * sizeof(uint64_t));
    }
    std::vector<std::vector<T>> all(from_own_on.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[(static_cast<size_t>(rank_) + i) % all.size()] = std::move(from_own_on[i]);
    }
    return all;
  }

  template <class T>
  static std::vector<uint64_t> packed(std::span<const std::vector<T>> lists) {
    std::vector<uint64_t> message;
    for (const std::vector<T>& list : lists) message.push_back(list.size());
    for (const std::vector<T>& list : lists) {
      for (const T value : list) message.push_back(std::bit_cast<uint64_t>(value));
    }
    return message;
  }

  template <class T>
  static void unpack(const std::vector<uint64_t>& message, int count,
                     std::vector<std::vector<T>>& lists) {
    auto at = message.begin() + count;
    for (int i = 0; i < count; ++i) {
      const auto end = at + static_cast<std::ptrdiff_t>(message[static_cast<size_t>(i)]);
      std::vector<T>& list = lists.emplace_back();
      for (; at != end; ++at) list.push_back(std::bit_cast<T>(*at));
    }
  }

  // Sends to the process that is so far before this one, and receives of the one that is behind.
  std::vector<uint64_t> exchange_around(int distance, const std::vector<uint64_t>& sent) {
    const int before = (rank_ - distance + size_) % size_, behind = (rank_ + distance) % size_;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(sent.data(), static_cast<int>(sent.size()), MPI_UINT64_T, before, 0, numbers_,
              &request);
    MPI_Status status;
    MPI_Probe(behind, 0, numbers_, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    std::vector<uint64_t> received(static_cast<size_t>(count));
    MPI_Recv(received.data(), count, MPI_UINT64_T, behind, 0, numbers_, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return received;
  }

  int rank_ = 0, size_ = 1;
  // Messages of `start` and of numbers meet no others.
  MPI_Comm arrays_ = MPI_COMM_NULL, numbers_ = MPI_COMM_NULL;
  int64_t bytes_sent_ = 0, bytes_gathered_ = 0;
};

}  // namespace
}  // namespace lacuna

// What launcher.cpp looks for in the plugin.
// The program finds them by name, also where other symbols are hidden.
extern "C" [[gnu::visibility("default")]] lacuna::Communicator* lacuna_join_mpi() {
  return new lacuna::MpiCommunicator();
}

extern "C" [[gnu::visibility("default")]] const char* lacuna_mpi_version() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);  // allowed before MPI_Init
  for (char* c = text; *c != '\0'; ++c) {
    if (*c == ',' || *c == '\n') *c = '\0';
  }
  return text;
}
