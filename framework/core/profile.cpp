#include "lacuna/framework/core/profile.hpp"

namespace lacuna {
namespace {

thread_local ProfileSink* profile_sink_of_thread = nullptr;

}  // namespace

ProfileSink* profile_sink() { return profile_sink_of_thread; }
void set_profile_sink(ProfileSink* sink) { profile_sink_of_thread = sink; }

}  // namespace lacuna
