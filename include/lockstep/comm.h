// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collectives between ranks, on raw memory.
//
// A rank is one replica, or one worker that stands for its replicas; it holds a Communicator, its end
// of a group. Every rank makes the same calls (all_reduce, reduce_scatter, all_gather, broadcast,
// barrier), gets a Pending at once, goes on computing and waits for the handle when it needs the
// result. What meets what is decided by the CollectiveKey of a call, never by the order of arrival, so
// threads and timing cannot pair the wrong tensors; whatever else ranks disagree about is an error
// that shows both sides.
//
// Two promises make the layer usable above:
//   * A collective completes on every rank or fails on every rank. A failure (a rank that disagrees,
//     dies, leaves, or stays away past the deadline, or abort()) ends the *epoch*: whatever has not
//     been entered by all then throws one reason everywhere, and nothing hangs.
//   * Sums follow one binary tree over the ranks, so the bits of a result depend on the values and
//     their ranks alone: not on timing, topology, buffer sizes, or the CPU's instruction set.
//
// The layer knows neither tensors nor variables nor the cluster. Implementations differ in what lies
// between the ranks: GrpcGroup's ranks are processes (src/comm/grpc/: wire -> links -> board, and
// transfer.h for what is sent where); HierarchicalGroup puts the ranks of a process on top of another
// group; InProcessGroup (threads of one process) is the reference to read:
//   src/comm/in_process_board.cc   how ranks meet and wait
//   src/comm/collective_work.cc    how a collective is cut into pieces that any rank may do
//   src/comm/tree_sum.cc           how the sum is taken
// To add one, derive a Communicator, build its CollectiveCall with src/comm/call.h (argument checks and
// messages are shared), and add it to the list that tests/comm/communicator_conformance_test.cc runs.

#include <lockstep/comm/bucket.h>
#include <lockstep/comm/collective_key.h>
#include <lockstep/comm/communicator.h>
#include <lockstep/comm/cross_device_ops.h>
#include <lockstep/comm/grpc.h>
#include <lockstep/comm/hierarchical.h>
#include <lockstep/comm/in_process.h>
#include <lockstep/comm/pending.h>
