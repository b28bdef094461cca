// Communicator: the processes of a job, and how they send each other arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/shards.h"

namespace lacuna {

/// Messages under way. Destroying it waits for them.
class PendingMessages {
 public:
  virtual ~PendingMessages() = default;
  /// Whether all have arrived; brings them on. Does not wait.
  virtual bool is_done() = 0;
  virtual void wait() = 0;
};

/// The processes of a job. Used by one thread, the one that has made it. Calls that all processes
/// must make, in the same order, are *collective*.
class Communicator : public ShardPeers {
 public:
  struct Outgoing {
    int to = 0;
    std::span<const float> values;
  };
  struct Incoming {
    int from = 0;
    std::span<float> into;
  };

  /// Starts to send and to receive. A message meets the one of the same tag that the other process
  /// has started. *Lifetime:* the arrays outlive the messages.
  virtual std::unique_ptr<PendingMessages> start(int tag, std::span<const Outgoing> sent,
                                                 std::span<const Incoming> received) = 0;
  /// Starts to sum an array over all processes, in an order that MPI chooses; all get the same.
  /// Collective, among such calls. *Lifetime:* as of `start`. *Cost:* some 2 log₂ N messages
  /// instead of 2 (N − 1); counted as sent are the 2 (N − 1) / N of the array that no way can do
  /// without.
  virtual std::unique_ptr<PendingMessages> start_sum(std::span<const float> own,
                                                     std::span<float> total) = 0;
  /// Tags are from 0 to this, and may be used again.
  virtual int last_tag() const = 0;

  /// Each process's text, by rank. Collective.
  virtual std::vector<std::string> gather_texts(const std::string& own) = 0;
  /// The value of process 0, in all processes. Collective.
  virtual std::string from_first(const std::string& bytes) = 0;
  /// Ends all processes, this one too, with that exit code.
  [[noreturn]] virtual void abort(int exit_code) = 0;
  /// Says goodbye to the others, and waits for their doing so. Collective; nothing may follow.
  virtual void leave() = 0;

  /// Bytes that this process has sent by `start`, `start_sum` and `gather_numbers`, and by `gather`
  /// and `swap`, so far.
  virtual int64_t bytes_sent() const = 0;
  virtual int64_t bytes_gathered() const = 0;
};

/// Whether a launcher of MPI programs (mpirun, srun) has started this process.
bool is_launched();
/// How many processes it has started: 1 without one, 0 if it does not report it.
int64_t launched_processes();
/// This process's number among them; 0 without a launcher, or if it does not report it.
int64_t launched_rank();
/// Whether this build can take part in such a job, and by what: "Open MPI v4.1.4…", or why not.
/// *Cost:* loads the library, and starts nothing.
std::string mpi_description();
/// Joins the job; null without a launcher. Once in a process. *Errors:* StateError when lacuna was
/// built without MPI, its plugin is missing, or the launcher is another MPI's, so that
/// this one knows of no other process.
std::shared_ptr<Communicator> join_job();

}  // namespace lacuna
