#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/commands/program.h"

namespace tessera {

// The program while it runs, to send it signals. Its output goes to files of `folder`.
class Running {
 public:
  Running(const TemporaryFolder& folder, std::vector<std::string> arguments)
      : out_(folder / "out"), err_(folder / "err") {
    arguments.insert(arguments.begin(), program_path());
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const int out = open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const int err = open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    child_ = fork();
    if (child_ == 0) {
      dup2(out, STDOUT_FILENO);
      dup2(err, STDERR_FILENO);
      execv(words[0], words.data());
      _exit(127);
    }
    close(out);
    close(err);
  }

  void send(int signal) const { kill(child_, signal); }

  // Waits until stdout holds `text` or the program has ended; whether it does.
  bool says(const std::string& text) const {
    while (bytes_of(out_).find(text) == std::string::npos) {
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == child_) return bytes_of(out_).find(text) != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  Said wait() const {
    int status = 0;
    waitpid(child_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(out_), bytes_of(err_)};
  }

 private:
  std::string out_, err_;
  pid_t child_;
};

}  // namespace tessera
