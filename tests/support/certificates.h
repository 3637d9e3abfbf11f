// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::testing {

// Certificate authorities and what they sign, made by the openssl program in a folder that lives as
// long as this object.
class Certificates {
 public:
  Certificates();
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  // Each names files <name>.pem and <name>.key.
  void make_authority(const std::string& name) const;
  // Valid for 127.0.0.1.
  void make_leaf(const std::string& name, const std::string& authority) const;

  std::string certificate(const std::string& name) const { return folder_ / (name + ".pem"); }
  std::string key(const std::string& name) const { return folder_ / (name + ".key"); }

 private:
  void openssl(const std::string& arguments) const;

  std::filesystem::path folder_;
};

}  // namespace lockstep::testing
