// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cluster: who the processes are that train together, and which of them this one is.
//
// A ClusterSpec lists addresses by job, a Task names one process, a ClusterResolver finds out both
// (from TensorFlow's TF_CONFIG, or as the program says), and a ClusterView puts them together: the
// workers in rank order, our own rank, whether we are the chief. Everything is checked before
// anybody opens a socket, so that a mistake is a sentence and not a hang.
//
// The layer knows no network: distribute/ translates a view to what comm/ needs, plain addresses
// and a rank. To add a resolver, derive a ClusterResolver; nothing else changes.

#include <lockstep/cluster/cluster_spec.h>
#include <lockstep/cluster/cluster_view.h>
#include <lockstep/cluster/resolver.h>
#include <lockstep/cluster/tf_config.h>
