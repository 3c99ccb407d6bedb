#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "tests/sanitized.h"

namespace {

std::array<char, 512> hung;  // the words for the case that runs

// The seconds that a case may take, less than ctest's limit: ctest ends a program that hangs without a word
// of the case that hangs. TESSERA_LONGEST_CASE allows more, where another machine is emulated.
unsigned longest_case() {
  const char* wanted = std::getenv("TESSERA_LONGEST_CASE");
  const int seconds = wanted ? std::atoi(wanted) : 0;
  return seconds > 0 ? static_cast<unsigned>(seconds) : tessera::sanitized ? 3600 : 1200;
}

// A signal handler calls nothing but what is safe in one: the words are ready, and ps is another program.
extern "C" void end_hung(int) {
  size_t length = 0;
  while (hung[length] != 0) ++length;
  const auto written = write(STDERR_FILENO, hung.data(), length);
  const pid_t pid = written < 0 ? -1 : fork();
  if (pid == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execlp("ps", "ps", "--ppid", "2", "-N", "-Ho", "pid,ppid,stat,wchan:20,etimes,args", nullptr);
    _exit(1);
  }
  if (pid > 0) waitpid(pid, nullptr, 0);
  _exit(1);
}

/// Ends the program where a case takes longer than longest_case(), with the case's name and all processes on
/// stderr.
struct Deadline : doctest::IReporter {
  explicit Deadline(const doctest::ContextOptions&) { std::signal(SIGALRM, end_hung); }

  void test_case_start(const doctest::TestCaseData& test) override {
    const unsigned seconds = longest_case();
    std::snprintf(hung.data(), hung.size(), "hung: \"%s\" has run for %u seconds. The processes are:\n",
                  test.m_name, seconds);
    alarm(seconds);
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override { alarm(0); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("deadline", 1, Deadline);

}  // namespace
