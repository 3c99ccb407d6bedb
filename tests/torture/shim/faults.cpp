// Preloaded into the program (LD_PRELOAD), lets calls on files of one folder fail as the system might:
//
//   FAULT_FOLDER  the calls that count are those on files of this folder
//   FAULT_CALL    open (a new file), write, short (half is written, then no more), chmod, fsync, close or
//                 rename; of those that read: find (open a file that is there), read, flock; mkdir; and of
//                 any folder, from the program's main on: malloc (with its kin), mmap
//   FAULT_AT      the number of the call that fails, from 1
//   FAULT_LASTS   1: those after it fail too, as on a disk that stays full
//   FAULT_MARK    a file that is made when a call has failed
//   FAULT_LOG     a file that gets a line with the name of every call that counts
//
// The calls go to the kernel directly, so that nothing stands between.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool in_folder(std::string_view path) {
  const std::string_view folder = setting("FAULT_FOLDER");
  return !folder.empty() && path.starts_with(folder);
}

// Whether the file behind a descriptor lies in the folder, and its name ends so.
bool in_folder(int descriptor, std::string_view ending = "") {
  char link[64] = "/proc/self/fd/", target[PATH_MAX];
  char digits[16];
  int count = 0;
  for (int rest = descriptor; rest > 0 || count == 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  for (char* to = link + std::strlen(link); count > 0;) *to++ = digits[--count];
  const long length = syscall(SYS_readlinkat, AT_FDCWD, link, target, sizeof target);
  if (length <= 0) return false;
  const std::string_view path(target, static_cast<size_t>(length));
  return in_folder(path) && path.ends_with(ending);
}

std::atomic<bool> disk_is_full{false};

void log(std::string_view call) {
  const char* path = std::getenv("FAULT_LOG");
  if (!path) return;
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return;
  syscall(SYS_write, file, call.data(), call.size());
  syscall(SYS_write, file, "\n", 1);
  syscall(SYS_close, file);
}

// Counts a call that counts; whether it must fail.
bool fails(std::string_view call) {
  log(call);
  static std::atomic<long> calls{0};
  if (call != setting("FAULT_CALL")) return false;
  const long number = ++calls, at = std::atol(std::getenv("FAULT_AT"));
  if (number != at && !(number > at && setting("FAULT_LASTS") == "1")) return false;
  const long mark =
      syscall(SYS_openat, AT_FDCWD, std::getenv("FAULT_MARK"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (mark >= 0) syscall(SYS_close, mark);
  return true;
}

int failed(int error) {
  errno = error;
  return -1;
}

int open_at(const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) && in_folder(path) && fails("open")) return failed(ENOSPC);
  if (!(flags & O_CREAT) && in_folder(path) && fails("find")) return failed(EMFILE);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

mode_t mode_after(int flags, va_list rest) { return flags & O_CREAT ? va_arg(rest, mode_t) : 0; }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_after(flags, rest);
  va_end(rest);
  return open_at(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_after(flags, rest);
  va_end(rest);
  return open_at(path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (in_folder(descriptor)) {
    if (disk_is_full || fails("write")) return failed(ENOSPC);
    if (fails("short")) {  // what follows finds the disk full
      disk_is_full = true;
      return syscall(SYS_write, descriptor, bytes, count / 2);
    }
  }
  return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t read(int descriptor, void* to, size_t count) {
  if (in_folder(descriptor) && fails("read")) return failed(EIO);
  return syscall(SYS_read, descriptor, to, count);
}

ssize_t pread(int descriptor, void* to, size_t count, off_t at) {
  if (in_folder(descriptor) && fails("read")) return failed(EIO);
  return syscall(SYS_pread64, descriptor, to, count, at);
}

ssize_t pread64(int descriptor, void* to, size_t count, off_t at) { return pread(descriptor, to, count, at); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // the system has a structure of that name
int flock(int descriptor, int operation) noexcept {
  if (in_folder(descriptor) && fails("flock")) return failed(ENOLCK);
  return static_cast<int>(syscall(SYS_flock, descriptor, operation));
}
#pragma GCC diagnostic pop

int mkdir(const char* path, mode_t mode) noexcept {
  if (in_folder(path) && fails("mkdir")) return failed(EACCES);
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int fchmod(int descriptor, mode_t mode) noexcept {
  if (in_folder(descriptor) && fails("chmod")) return failed(EPERM);
  return static_cast<int>(syscall(SYS_fchmod, descriptor, mode));
}

int fsync(int descriptor) {
  if (in_folder(descriptor) && fails("fsync")) return failed(EIO);
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

int close(int descriptor) {
  const bool fail = in_folder(descriptor, ".partial") && fails("close");
  const long result = syscall(SYS_close, descriptor);
  return fail ? failed(EIO) : static_cast<int>(result);
}

int rename(const char* from, const char* to) noexcept {
  if (in_folder(to) && fails("rename")) return failed(EIO);
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

// ---- Memory ----

#ifndef FAULTS_OF_FILES_ALONE  // a sanitizer has its own

void* __libc_malloc(size_t bytes) noexcept;
void* __libc_calloc(size_t count, size_t bytes) noexcept;
void* __libc_realloc(void* block, size_t bytes) noexcept;
void* __libc_memalign(size_t alignment, size_t bytes) noexcept;

// What the loader and constructors of static objects ask for does not count: nothing of the program runs yet.
static std::atomic<bool> in_main{false};

static bool no_memory(std::string_view call) {
  static const bool wanted = setting("FAULT_CALL") == call;
  if (!wanted || !in_main || !fails(call)) return false;
  errno = ENOMEM;
  return true;
}

void* malloc(size_t bytes) noexcept { return no_memory("malloc") ? nullptr : __libc_malloc(bytes); }

void* calloc(size_t count, size_t bytes) noexcept {
  return no_memory("malloc") ? nullptr : __libc_calloc(count, bytes);
}

void* realloc(void* block, size_t bytes) noexcept {
  return no_memory("malloc") ? nullptr : __libc_realloc(block, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return no_memory("malloc") ? nullptr : __libc_memalign(alignment, bytes);
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (in_main && setting("FAULT_CALL") == "mmap" && fails("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

using Main = int (*)(int, char**, char**);
static Main program_main = nullptr;

static int counted_main(int argc, char** argv, char** environment) {
  in_main = true;
  const int code = program_main(argc, argv, environment);
  in_main = false;
  return code;
}

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                      void* stack) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  program_main = main;
  return reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"))(counted_main, argc, argv, init, fini,
                                                                        rtld_fini, stack);
}

#endif
}
