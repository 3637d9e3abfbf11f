// SPDX-License-Identifier: Apache-2.0
#include "support/certificates.h"

#include <stdlib.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace lockstep::testing {
namespace {

constexpr char kNewKey[] = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

}  // namespace

Certificates::Certificates() {
  std::string folder = std::filesystem::temp_directory_path() / "lockstep-certificates-XXXXXX";
  if (!::mkdtemp(folder.data())) throw std::runtime_error("cannot make a temporary folder");
  folder_ = folder;
}

Certificates::~Certificates() { std::filesystem::remove_all(folder_); }

void Certificates::openssl(const std::string& arguments) const {
  const std::string command = "cd '" + folder_.string() + "' && openssl " + arguments + " 2>log";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void Certificates::make_authority(const std::string& name) const {
  openssl("req -x509 " + std::string(kNewKey) + " -subj '/CN=authority " + name + "' -keyout " +
          name + ".key -out " + name + ".pem -days 2");
}

void Certificates::make_leaf(const std::string& name, const std::string& authority) const {
  std::ofstream(folder_ / "extensions") << "subjectAltName=IP:127.0.0.1\n";
  openssl("req " + std::string(kNewKey) + " -subj '/CN=" + name + "' -keyout " + name +
          ".key -out request");
  openssl("x509 -req -in request -CA " + authority + ".pem -CAkey " + authority +
          ".key -CAcreateserial -extfile extensions -days 2 -out " + name + ".pem");
}

}  // namespace lockstep::testing
