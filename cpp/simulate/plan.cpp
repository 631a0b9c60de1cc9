#include "plan.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace simulated {

namespace {

[[noreturn]] void misunderstood(const std::string& line) {
    std::fprintf(stderr, "the simulated builder does not understand this line of its plan: %s\n", line.c_str());
    std::exit(125);
}

// The words of one line.
class Words {
  public:
    explicit Words(const std::string& line) : line_(line), words_(parted(line, ' ')) {}

    std::string text() {
        if (next_ == words_.size()) {
            misunderstood(line_);
        }
        const std::string& word = words_[next_++];
        std::string plain;
        for (std::size_t i = 0; i < word.size(); ++i) {
            if (word[i] != '%') {
                plain += word[i];
            } else if (i + 2 < word.size()) {
                plain += static_cast<char>(std::strtol(word.substr(i + 1, 2).c_str(), nullptr, 16));
                i += 2;
            }
        }
        return plain;
    }

    std::int64_t number() {
        const std::string word = text();
        char* end = nullptr;
        const std::int64_t value = std::strtoll(word.c_str(), &end, 10);
        if (word.empty() || *end != '\0') {
            misunderstood(line_);
        }
        return value;
    }

    bool flag() { return number() != 0; }

    std::vector<std::int64_t> extents() {
        std::vector<std::int64_t> all(static_cast<std::size_t>(number()));
        for (std::int64_t& extent : all) {
            extent = number();
        }
        return all;
    }

  private:
    const std::string& line_;
    std::vector<std::string> words_;
    std::size_t next_ = 0;
};

// The names of an enumeration's members in their order.
template <class Enumeration, std::size_t kNames>
Enumeration one_of(const std::string& word, const char* const (&names)[kNames]) {
    for (std::size_t i = 0; i < kNames; ++i) {
        if (word == names[i]) {
            return static_cast<Enumeration>(i);
        }
    }
    misunderstood(word);
}

Act act(Words& words) {
    constexpr const char* kKinds[] = {"phase",  "step",    "finish", "silence", "message",
                                      "tactic", "threads", "times",  "fault",   "grow"};
    Act read;
    read.kind = one_of<Act::Kind>(words.text(), kKinds);
    read.number = words.number();
    read.ns = words.number();
    read.open = words.flag();
    read.name = words.text().substr(1);
    read.parent = words.text().substr(1);
    return read;
}

class Reader {
  public:
    Plan read(const std::string& text) {
        for (const std::string& line : parted(text, '\n')) {
            Words words(line);
            const std::string what = words.text();
            if (what == "end") {
                open_.pop_back();
            } else if (what == "act" || what == "open") {
                add(act(words), what == "open");
            } else if (!of_the_job(what, words) && !of_a_build(what, words)) {
                misunderstood(line);
            }
        }
        return plan_;
    }

  private:
    // An act of the innermost body; one that is opened gets the acts up to its end as its own body.
    void add(Act read, bool opened) {
        std::vector<Act>& body = open_.empty() ? plan_.builds.back().acts : innermost().body;
        body.push_back(std::move(read));
        if (opened) {
            open_.push_back(body.size() - 1);
        }
    }

    Act& innermost() {
        Act* at = &plan_.builds.back().acts[open_.front()];
        for (std::size_t depth = 1; depth < open_.size(); ++depth) {
            at = &at->body[open_[depth]];
        }
        return *at;
    }

    bool of_the_job(const std::string& what, Words& words) {
        if (what == "library") {
            plan_.rtx = words.flag();
            for (int& part : plan_.version) {
                part = static_cast<int>(words.number());
            }
            plan_.device = words.text();
        } else if (what == "player") {
            plan_.linked = words.flag();
            plan_.at_once = words.flag();
            plan_.ignore_sigterm = words.flag();
            plan_.crash_at_exit = words.flag();
            plan_.exit_code = static_cast<int>(words.number());
        } else if (what == "config") {
            const std::string name = words.text();
            plan_.config[name] = words.number();
        } else if (what == "capability") {
            plan_.capabilities.push_back(static_cast<std::int32_t>(words.number()));
        } else if (what == "input" || what == "output") {
            Tensor tensor;
            tensor.name = words.text();
            tensor.type = static_cast<std::int32_t>(words.number());
            tensor.extents = words.extents();
            (what == "input" ? plan_.inputs : plan_.outputs).push_back(tensor);
        } else if (what == "layer") {
            const auto kind = static_cast<std::int32_t>(words.number());
            plan_.layers.insert(plan_.layers.end(), static_cast<std::size_t>(words.number()), kind);
        } else if (what == "profile") {
            Profile profile;
            profile.index = static_cast<std::int32_t>(words.number());
            profile.input = words.text();
            for (std::vector<std::int64_t>& shape : profile.shapes) {
                shape = words.extents();
            }
            plan_.profiles.push_back(profile);
        } else {
            return false;
        }
        return true;
    }

    bool of_a_build(const std::string& what, Words& words) {
        constexpr const char* kMethods[] = {"serialized", "engine", "stream", "kernel_text"};
        constexpr const char* kOnFalse[] = {"stop", "ignore", "engine"};
        constexpr const char* kWhen[] = {"before", "after", "always"};
        constexpr const char* kSave[] = {"success", "always", "never"};
        if (what == "build") {
            Build build;
            build.method = one_of<Build::Method>(words.text(), kMethods);
            build.on_false = one_of<Build::OnFalse>(words.text(), kOnFalse);
            build.returns_engine = words.flag();
            build.engine_bytes = words.number();
            plan_.builds.push_back(build);
            return true;
        }
        Build& build = plan_.builds.back();
        if (what == "monitor") {
            build.own_monitor = true;
            build.false_at = words.number();
            build.crash_at = words.number();
        } else if (what == "cache") {
            build.cache.used = true;
            build.cache.ignore_mismatch = words.flag();
            build.cache.save = one_of<CacheUse::Save>(words.text(), kSave);
            build.cache.path = words.text();
        } else if (what == "write") {
            Write write;
            write.when = one_of<Write::When>(words.text(), kWhen);
            write.bytes = words.number();
            write.ns = words.number();
            write.path = words.text();
            build.writes.push_back(write);
        } else {
            return false;
        }
        return true;
    }

    Plan plan_;
    std::vector<std::size_t> open_; // the place of each open act in the body around it
};

} // namespace

std::vector<std::string> parted(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

Plan read_plan(const std::string& text) { return Reader().read(text); }

// TensorRT 9 has one digit for the minor version where later ones have two.
std::int32_t version_number(const Plan& plan) {
    const int major = plan.version[0] * (!plan.rtx && plan.version[0] < 10 ? 1000 : 10000);
    return major + plan.version[1] * 100 + plan.version[2];
}

// From TensorRT-RTX 1.5 and TensorRT 11.4 on; in between the headers are not public, and it is taken for plain.
bool has_versioned_logger(const Plan& plan) {
    return plan.rtx ? plan.version[1] >= 5 : plan.version[0] == 11 && plan.version[1] >= 4;
}

} // namespace simulated
