// What to play: the script, as `stuckproof simulate` writes it for the library and the player. One thing a line; words
// are parted by spaces and carry spaces, percent signs and control characters as %XX.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace simulated {

// One thing that a build does, in the words of docs/simulate.md.
struct Act {
    enum class Kind { phase, step, finish, silence, message, tactic, threads, times, fault, grow };
    Kind kind = Kind::silence;
    std::string name;        // the phase, the message, the tactic's key, the fault
    std::string parent;      // of a phase; empty for the one around it
    std::int64_t number = 0; // steps, the step, the severity, threads, times, the exit code, bytes
    std::int64_t ns = -1;    // silence, the pause before each step, a tactic's cost, how long a fault lasts
    bool open = false;       // a phase that something else must finish
    std::vector<Act> body;
};

// A file that the application writes.
struct Write {
    enum class When { before, after, always };
    When when = When::after;
    std::int64_t bytes = -1; // -1: the engine itself
    std::int64_t ns = 0;     // over this time, in pieces
    std::string path;
};

// The timing cache of a build's application.
struct CacheUse {
    enum class Save { success, always, never };
    bool used = false;
    bool ignore_mismatch = false;
    Save save = Save::success;
    std::string path;
};

struct Build {
    enum class Method { serialized, engine, stream, kernel_text };
    enum class OnFalse { stop, ignore, engine };
    Method method = Method::serialized;
    OnFalse on_false = OnFalse::stop;
    bool returns_engine = true;
    std::int64_t engine_bytes = 0;
    bool own_monitor = false;
    std::int64_t false_at = -1; // the application's monitor says false at this step, counted over the build
    std::int64_t crash_at = -1;
    CacheUse cache;
    std::vector<Write> writes;
    std::vector<Act> acts;
};

struct Tensor {
    std::string name;
    std::int32_t type = 0;
    std::vector<std::int64_t> extents;
};

struct Profile {
    std::string input;
    std::vector<std::int64_t> shapes[3]; // minimum, optimum, maximum
    std::int32_t index = 0;
};

struct Plan {
    bool rtx = false;
    int version[4] = {};
    bool linked = false;
    bool at_once = false;
    bool ignore_sigterm = false;
    bool crash_at_exit = false;
    int exit_code = -1; // -1: 0 when every build gave an engine, else 1
    std::string device;
    std::map<std::string, std::int64_t> config;
    std::vector<std::int32_t> capabilities;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::vector<std::int32_t> layers; // the kind of each
    std::vector<Profile> profiles;
    std::vector<Build> builds;
};

// The parts of a text between the separators; without an empty one at the end.
std::vector<std::string> parted(const std::string& text, char separator);

// The plan of a text. Whatever it does not understand ends the process: the text is written by our own program.
Plan read_plan(const std::string& text);

// What TensorRT calls NV_TENSORRT_VERSION.
std::int32_t version_number(const Plan& plan);

// Whether the application's logger is a versioned interface.
bool has_versioned_logger(const Plan& plan);

} // namespace simulated
