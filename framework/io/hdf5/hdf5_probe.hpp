// Reading HDF5 files of others, on which the HDF5 library can crash or loop: in a child process
// first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace lacuna {

struct Hdf5Probe {
  std::string path;
  /// What is read of it, for a file of which different things are read: "checkpoint".
  std::string purpose = {};
  /// Whether a file may name more than it holds (Hdf5Links::Followed), so that its size does not
  /// bound how long reading takes.
  bool has_time_limit = true;
};

/// Does `read`, which must read the file alone, in a child process, so that whoever calls this can
/// do the same after it. A DataError that it throws there is thrown here, and the file never seen
/// by this process's HDF5 library, which damaged files leave in disorder. Files that this process
/// has written, or probed for the same purpose, are passed over: they are known by device, inode,
/// size and time.
///
/// The child is a copy of this process (fork without exec, so that a library needs no program of
/// its own) with one thread, in which `parallel_for` runs serially; it prints nothing, leaves no
/// core file, may take what memory is available, and compute for `probe_seconds`.
///
/// *Errors:* DataError: what `read` throws; "could not be read: the HDF5 library crashed on it
/// (signal 11)", or did not come to an end; or no process could be started. *Cost:* fork, and
/// reading the file twice.
void probe_hdf5(const Hdf5Probe& probe, const std::function<void()>& read);

/// Seconds of processor time for a file of this size: 3, and 2 for each megabyte.
double probe_seconds(int64_t bytes);

/// Says that the file at `path` is what this process has just written.
void trust_hdf5(const std::string& path);

}  // namespace lacuna
