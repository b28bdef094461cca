// Communicator: the processes of a job, which exchange arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/shards.h"

namespace lacuna {

/// Messages in transit. The destructor waits for them.
class PendingMessages {
 public:
  virtual ~PendingMessages() = default;
  /// Whether all have arrived. Makes progress, but does not wait.
  virtual bool is_done() = 0;
  virtual void wait() = 0;
};

/// The processes of a job. Used only by the thread that created it. Calls that all processes must
/// make, in the same order, are *collective*.
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

  /// Starts to send and to receive. A message is matched with the message of the same tag that the
  /// other process has started. *Lifetime:* the arrays outlive the messages.
  virtual std::unique_ptr<PendingMessages> start(int tag, std::span<const Outgoing> sent,
                                                 std::span<const Incoming> received) = 0;
  /// Starts to sum an array over all processes, in an order that MPI chooses; all get the same.
  /// Collective, among such calls. *Lifetime:* as of `start`. *Cost:* about 2 log₂ N messages
  /// instead of 2 (N − 1). Counted as sent: 2 (N − 1) / N of the array, the least that any
  /// algorithm sends.
  virtual std::unique_ptr<PendingMessages> start_sum(std::span<const float> own,
                                                     std::span<float> total) = 0;
  /// Tags are from 0 to this, and may be used again.
  virtual int last_tag() const = 0;

  /// Each process's text, by rank. Collective.
  virtual std::vector<std::string> gather_texts(const std::string& own) = 0;
  /// The value of process 0, in all processes. Collective.
  virtual std::string from_first(const std::string& bytes) = 0;
  /// Ends all processes, including this one, with that exit code.
  [[noreturn]] virtual void abort(int exit_code) = 0;
  /// Ends the communication, and waits until the other processes have done the same. Collective; no
  /// call may follow.
  virtual void leave() = 0;

  /// Bytes that this process has sent by `start`, `start_sum` and `gather_numbers`, and by `gather`
  /// and `swap`, so far.
  virtual int64_t bytes_sent() const = 0;
  virtual int64_t bytes_gathered() const = 0;
};

/// Whether a launcher of MPI programs (mpirun, srun) has started this process.
bool is_launched();
/// The number of processes that the launcher has started: 1 without a launcher, 0 if it does not
/// report it.
int64_t launched_processes();
/// This process's number among them; 0 without a launcher, or if it does not report it.
int64_t launched_rank();
/// Whether this build can take part in such a job, with the library ("Open MPI v4.1.4…") or the
/// reason why not. *Cost:* loads the library; starts nothing.
std::string mpi_description();
/// Joins the job; null without a launcher. Once in a process. *Errors:* StateError when lacuna was
/// built without MPI, its plugin is missing, or the launcher belongs to another MPI, so this one
/// sees no other process.
std::shared_ptr<Communicator> join_job();

}  // namespace lacuna
