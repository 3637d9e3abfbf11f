// SPDX-License-Identifier: Apache-2.0
#pragma once

// Data: from where the rows of a training step come.
//
// A Dataset<T> is a source (from_tensor_slices, range, from_generator, from_csv, digits,
// fashion_mnist) and a chain of small transformations with tf.data's names (map, shuffle, batch,
// repeat, take, skip, shard, prefetch), an immutable value. Its type T reaches the user at both ends
// only: at once it is erased to an AnyDataset over vectors of tensors, and all transformations live
// in src/data, one file each.
//
// Three ideas carry the layer:
//
// An element on its way is not read. It is the number of a row of the source until someone needs
// its tensors: batch, prefetch, or the iterator. Hence shuffling moves numbers, a batch is gathered
// in one pass, functions given to map run only for elements that are delivered, and a worker that
// is dealt a part of each batch pays for that part alone.
//
// A position is two integers. What an iterator yields depends only on the chain, its seeds and the
// number of the epoch, so its state is (epoch, position), whatever was prefetched or lay in a
// shuffle buffer, and at whatever number of replicas. Restoring walks there without reading: whole
// epochs of a repeat and sources with rows are jumped over.
//
// A dataset knows what can be known without reading: cardinality, dtypes and shapes, the size of
// its batches. Strategies decide by that how to deal rows to replicas (AnyDataset).

#include <lockstep/data/any_dataset.h>
#include <lockstep/data/csv.h>
#include <lockstep/data/dataset.h>
#include <lockstep/data/digits.h>
#include <lockstep/data/element.h>
#include <lockstep/data/fashion_mnist.h>
#include <lockstep/data/from_generator.h>
#include <lockstep/data/from_tensors.h>
#include <lockstep/data/idx.h>
