#pragma once

#include <initializer_list>
#include <string>

namespace tessera {

// A shared library that is loaded when it is first needed. libcurl and libarchive bring some thirty others,
// which a program that trains has no use for.
class Library {
 public:
  // Loads the first of `names` that is there, for as long as the program runs. Fails, naming the Debian
  // package, where none is.
  Library(std::initializer_list<const char*> names, const std::string& package);

  // The function of this name, as its header declares it:
  // function<decltype(curl_easy_init)>("curl_easy_init").
  template <class F> F* function(const char* name) const { return reinterpret_cast<F*>(find(name)); }

 private:
  void* find(const char* name) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace tessera
