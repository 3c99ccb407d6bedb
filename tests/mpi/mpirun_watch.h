#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tessera {

/// Ends an mpirun that hangs although its ranks have ended. That of Open MPI 4.1 now and then waits for
/// itself in pmix_rte_finalize(), deaf to SIGTERM: once in some 2,000 sessions of which a rank was killed.
class MpirunWatch {
 public:
  /// Reads mpirun's process from a file that it writes.
  explicit MpirunWatch(std::filesystem::path pid_file,
                       std::chrono::seconds patience = std::chrono::seconds(10))
      : pid_file_(std::move(pid_file)),
        patience_(patience),
        thread_([this](const std::stop_token& stop) { watch(stop); }) {}

  /// The code of the ranks, where mpirun was ended. Call it when mpirun has ended.
  std::optional<int> code_of_ranks() {
    thread_.request_stop();
    thread_.join();
    return code_;
  }

 private:
  static std::string line_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
  }

  // The exit codes of a process's children; nothing while one of them lives, or where there are none.
  static std::vector<int> codes_of_children(const std::string& pid) {
    std::vector<int> codes;
    std::istringstream children(line_of("/proc/" + pid + "/task/" + pid + "/children"));
    for (std::string child; children >> child;) {
      const std::string stat = line_of("/proc/" + child + "/stat");  // "7 (tessera) Z ... 512"
      const size_t name_end = stat.rfind(") ");
      if (name_end == std::string::npos || stat[name_end + 2] != 'Z') return {};
      const int status = std::stoi(stat.substr(stat.rfind(' ') + 1));
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return codes;
  }

  void watch(const std::stop_token& stop) {
    auto alive = std::chrono::steady_clock::now();  // when a rank was last seen
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const auto now = std::chrono::steady_clock::now();
      const std::string pid = line_of(pid_file_);
      const std::vector<int> codes = pid.empty() ? std::vector<int>() : codes_of_children(pid);
      if (codes.empty()) alive = now;
      if (now - alive < patience_) continue;
      code_ = *std::ranges::max_element(codes);
      kill(std::stoi(pid), SIGKILL);
      return;
    }
  }

  std::filesystem::path pid_file_;
  std::chrono::seconds patience_;
  std::optional<int> code_;
  std::jthread thread_;  // the last, for it reads the others
};

}  // namespace tessera
