#include "files.h"

#include "stage.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace simulated {

std::string read_file(const std::string& path) {
    std::string all;
    if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
        char piece[4096];
        while (const std::size_t count = std::fread(piece, 1, sizeof(piece), file)) {
            all.append(piece, count);
        }
        std::fclose(file);
    }
    return all;
}

bool write_file(const std::string& path, const std::string& bytes, std::int64_t ns) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        std::fprintf(stderr, "cannot open %s: %s\n", path.c_str(), std::strerror(errno));
        return false;
    }
    const std::size_t piece = ns > 0 ? bytes.size() / 64 + 1 : bytes.size();
    bool whole = true;
    for (std::size_t at = 0; at < bytes.size() && whole; at += piece) {
        const std::size_t count = std::min(piece, bytes.size() - at);
        whole = ::write(fd, bytes.data() + at, count) == static_cast<ssize_t>(count);
        pause_for(ns / 64);
    }
    if (!whole) {
        std::fprintf(stderr, "cannot write %s: %s\n", path.c_str(), std::strerror(errno));
    }
    return ::close(fd) == 0 && whole;
}

} // namespace simulated
