// SPDX-License-Identifier: Apache-2.0
// A small GPT that learns a text byte by byte and then goes on writing. Any text will do, such as that
// of Debian's package bible-kjv: bible Gen1:1-Rev22:21 > bible.txt
#include <lockstep/lockstep.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"
namespace ls = lockstep;

struct GptOptions {
  std::int64_t layers, size, heads, length;
};

class Gpt {
 public:
  explicit Gpt(const GptOptions& options)
      : options_(options),
        bytes_(256, options.size, {.name = "bytes"}),
        positions_(options.length, options.size),
        norm_(options.size, {.epsilon = 1e-5}),
        logits_(options.size, 256, {.dtype = ls::DType::f32}) {
    for (std::int64_t i = 0; i < options.layers; ++i)
      blocks_.emplace_back(
          options.size, options.heads,
          ls::nn::TransformerBlockOptions{.causal = true, .name = "block_" + std::to_string(i)});
  }

  // The logits of what follows each byte of text [batch, bytes].
  ls::Tensor operator()(const ls::Tensor& text) const {
    ls::Tensor x = positions_(bytes_(text));
    for (const auto& block : blocks_) x = block(x, {.training = true});
    return logits_(norm_(x));
  }

  // The same of text that comes after what is in the caches, for its last byte only.
  ls::Tensor next(const ls::Tensor& text, std::vector<ls::nn::KeyValueCache>& caches) const {
    ls::Tensor x = positions_.from(caches[0].length, bytes_(text));
    for (std::size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].extend(x, caches[i]);
    return logits_(norm_(ls::slice(x, {0, x.dim(1) - 1, 0}, {-1, 1, -1})));
  }
  std::vector<ls::nn::KeyValueCache> make_caches() const {
    std::vector<ls::nn::KeyValueCache> caches;
    for (const auto& block : blocks_) caches.push_back(block.make_cache(1, options_.length));
    return caches;
  }

  std::vector<ls::Variable> variables() const {
    std::vector<ls::Variable> all;
    const auto append = [&](const ls::nn::Layer& layer) {
      all.insert(all.end(), layer.variables().begin(), layer.variables().end());
    };
    append(bytes_);
    append(positions_);
    for (const auto& block : blocks_) append(block);
    append(norm_);
    append(logits_);
    return all;
  }

 private:
  GptOptions options_;
  ls::nn::Embedding bytes_;
  ls::nn::PositionEmbedding positions_;
  std::vector<ls::nn::TransformerBlock> blocks_;
  ls::nn::LayerNorm norm_;
  ls::nn::Dense logits_;
};

// The text in windows of length + 1 bytes, each of which begins with the last byte of the one before.
ls::data::Dataset<ls::Tensor> windows(const std::string& text, std::int64_t length) {
  const std::int64_t count = (static_cast<std::int64_t>(text.size()) - 1) / length;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < count; ++i)
    bytes.insert(bytes.end(), text.begin() + i * length, text.begin() + (i + 1) * length + 1);
  return ls::data::from_tensor_slices(
      ls::Tensor({count, length + 1}, std::span<const std::uint8_t>(bytes)));
}

// What was written last, and what is to be remembered of all before.
struct Written {
  ls::Tensor byte;  // [1, 1]
  std::vector<ls::nn::KeyValueCache> caches;
};

// `length` bytes after `text`. The model looks back at no more than `context` bytes: when it has seen as
// many, it starts again from the last half of them.
std::string continued(const ls::Strategy& strategy, const Gpt& gpt, std::string text,
                      std::size_t length, std::size_t context) {
  const auto write = [&](const ls::Tensor& bytes, std::vector<ls::nn::KeyValueCache> caches) {
    const ls::Tensor logits = gpt.next(bytes, caches);
    const ls::Tensor byte = ls::categorical(ls::reshape(logits, {1, 256}) / 0.8, 1);
    return Written{byte, std::move(caches)};
  };
  const auto begin = [&](const ls::Tensor& bytes) { return write(bytes, gpt.make_caches()); };
  const auto go_on = [&](const Written& last) { return write(last.byte, last.caches); };
  const std::size_t end = text.size() + length;
  while (text.size() < end) {
    std::vector<std::int64_t> seen;
    for (std::size_t i = text.size() - std::min(text.size(), context / 2); i < text.size(); ++i)
      seen.push_back(static_cast<unsigned char>(text[i]));
    const auto count = static_cast<std::int64_t>(seen.size());
    auto written = strategy.run(begin, ls::Tensor({1, count}, std::span<const std::int64_t>(seen)));
    text += static_cast<char>(written[0].byte.item<int>());
    for (std::size_t i = seen.size() + 1; i < context && text.size() < end; ++i) {
      written = strategy.run(go_on, written);
      text += static_cast<char>(written[0].byte.item<int>());
    }
  }
  return text;
}

struct Training {
  Training(const GptOptions& options, const ls::optim::Schedule& learning_rate)
      : gpt(options),
        optimizer(
            {.learning_rate = learning_rate, .weight_decay = 0.01, .clip = {.global_norm = 1}}) {
    optimizer.exclude_from_weight_decay({"bias", "gamma", "beta", "embeddings"});
  }

  Gpt gpt;
  ls::optim::AdamW optimizer;
  ls::metrics::Mean mean_loss, validation_loss;

  ls::Tensor losses_of(const ls::Tensor& window) const {
    const std::int64_t length = window.dim(1) - 1;
    const ls::Tensor text_and_next = ls::cast(window, ls::DType::i32);
    const ls::Tensor input = ls::slice(text_and_next, {0, 0}, {-1, length});
    const ls::Tensor next = ls::slice(text_and_next, {0, 1}, {-1, length});
    return ls::mean(ls::nn::sparse_softmax_cross_entropy(next, gpt(input)), {.axes = {1}});
  }
  ls::Tensor step(const ls::Tensor& window) {
    ls::GradientTape tape;
    const ls::Tensor losses = losses_of(window);
    const ls::Tensor loss = ls::nn::compute_average_loss(losses);
    optimizer.minimize(loss, variables(), tape);
    mean_loss.update_state(losses);
    return loss;
  }
  void validate(const ls::Tensor& window) { validation_loss.update_state(losses_of(window)); }

  std::vector<ls::Variable> variables() const { return gpt.variables(); }
  ls::Tensor metric() const { return mean_loss.result(); }
};

int main(int argc, char** argv) try {
  const examples::Flags flags(
      argc, argv,
      {{"text", "bible.txt", "file to learn"},
       {"layers", "4", "of attention"},
       {"size", "128", "of the vector of a position"},
       {"heads", "4", "of attention"},
       {"length", "64", "bytes that the model looks at"},
       {"batch", "32", "windows of a step, on all replicas together"},
       {"steps", "1000", "of training"},
       {"rate", "0.001", "learning rate, reached after a tenth of the steps"},
       {"precision", "float32", "or mixed_bfloat16: see nn/precision.h"},
       {"seed", "7", "of the first weights and of the order of windows"},
       {"print_every", "100", "steps between two lines of output"},
       {"sample", "400", "bytes to write in the end"},
       examples::kDoctor});
  const ls::Strategy strategy = flags.strategy();
  const auto length = flags.number<std::int64_t>("length", 2);
  const auto global_batch_size = flags.number<std::int64_t>("batch");
  const auto seed = flags.number<std::uint64_t>("seed");
  std::ostringstream file;
  file << std::ifstream(flags.text("text"), std::ios::binary).rdbuf();
  const std::string text = file.str();
  if (text.size() < static_cast<std::size_t>(40 * length))
    throw std::invalid_argument(flags.text("text") + ": expected a text of " +
                                std::to_string(40 * length) + " bytes or more, got " +
                                std::to_string(text.size()));
  const std::size_t held_out = text.size() / 20;
  const auto rows = windows(text.substr(0, text.size() - held_out), length);
  const auto steps = flags.number<std::int64_t>("steps");
  ls::nn::set_global_policy(flags.text("precision"));
  const GptOptions options{.layers = flags.number<std::int64_t>("layers"),
                           .size = flags.number<std::int64_t>("size"),
                           .heads = flags.number<std::int64_t>("heads"),
                           .length = length};
  const ls::optim::Schedule rate = ls::optim::cosine_decay(
      flags.number<double>("rate"),
      {.decay_steps = steps - steps / 10, .alpha = 0.1, .warmup_steps = steps / 10});
  const auto make = [&] { return Training(options, rate); };
  if (flags.given("doctor")) return examples::doctor(make, rows);

  examples::print(strategy, "%s\n", strategy.describe().c_str());
  const auto train = strategy.distribute_dataset(
      rows.shuffle({.seed = seed}).repeat().batch(global_batch_size).prefetch(2));
  const auto validation = strategy.distribute_dataset(
      windows(text.substr(text.size() - held_out), length).take(1000).batch(global_batch_size));

  const auto scope = strategy.scope();
  ls::current_random_state().seed = seed;
  Training training = make();
  const auto train_step = [&](const ls::Tensor& window) { training.step(window); };
  const auto validation_step = [&](const ls::Tensor& window) { training.validate(window); };

  auto batches = train.iterator();
  for (std::int64_t step = 1; step <= steps; ++step) {
    strategy.run(train_step, *batches.next());
    if (step % flags.number<std::int64_t>("print_every", 1) != 0 && step != steps) continue;
    examples::print(strategy, "step %lld: loss %.6f\n", static_cast<long long>(step),
                    training.mean_loss.result().item<double>());
    training.mean_loss.reset_state();
  }
  for (const auto& batch : validation) strategy.run(validation_step, batch);
  examples::print(strategy, "validation loss %.6f\n%s",
                  training.validation_loss.result().item<double>(),
                  strategy.step_report().to_table().c_str());
  const auto sample = flags.number<std::size_t>("sample");
  if (sample == 0) return 0;
  const std::string written =
      continued(strategy, training.gpt, text.substr(text.size() - held_out, 32), sample,
                static_cast<std::size_t>(length));
  if (!strategy.workers().is_chief()) return 0;
  std::fwrite(written.data(), 1, written.size(), stdout);
  std::puts("");
} catch (const std::exception& error) {
  return examples::failed(error);
}
