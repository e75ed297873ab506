// A target: weights of one architecture and the graph that runs rows through them.
#pragma once

#include <memory>
#include <vector>

#include "blocks.h"
#include "pass.h"
#include "weights.h"

namespace dflash {

constexpr int kMostContext = 1 << 24; // tokens of a session; what files claim beyond it is out of reach

class Target {
  public:
    // Check the file and describe its weights on `device`. Nothing is loaded. Throws BAD_FILE or UNSUPPORTED.
    static std::unique_ptr<Target> open(std::shared_ptr<const ModelFile> file, const Device & device, int n_threads);
    static bool knows(const std::string & architecture);
    virtual ~Target() = default;
    Target(const Target &) = delete;
    Target & operator=(const Target &) = delete;

    const ModelFile & file() const { return weights_.file(); }
    std::shared_ptr<const ModelFile> share_file() const { return weights_.share_file(); }
    const Device & device() const { return weights_.device(); }
    int n_threads() const { return n_threads_; }
    int n_layers() const { return n_layers_; }
    int64_t n_head() const { return n_head_; } // of queries, in attention layers
    int64_t n_embd() const { return n_embd_; }
    int64_t n_vocab() const { return n_vocab_; }
    int context_tokens() const { return context_tokens_; } // trained
    const std::vector<int32_t> & stop_tokens() const { return stop_tokens_; }
    const std::vector<KvShape> & kv_shapes() const { return kv_shapes_; }
    const std::vector<RecurrentShape> & recurrent_shapes() const { return recurrent_shapes_; }
    // Blocks of columns in which the tree chunk solves its triangular system.
    int64_t n_solve_blocks() const { return n_solve_blocks_; }
    Weights & weights() { return weights_; }
    const Weights & weights() const { return weights_; }

    // Fill pass.graph: embeddings, layers (KV rows written, recurrent state read or moved on), features, and head,
    // argmax and logits when pass.shape.has_logits.
    void build(Pass & pass, const Timeline & timeline) const;
    // What a draft borrows. tokens I32 [n] -> [n_embd, n]; hidden (already normed) -> logits [n_vocab, n].
    ggml_tensor * embed(ggml_context * ctx, ggml_tensor * tokens) const;
    ggml_tensor * head(ggml_context * ctx, ggml_tensor * hidden) const;

  protected:
    Target(std::shared_ptr<const ModelFile> file, const Device & device);
    // Run the layers; the residual stream after the last one, or nullptr when nobody reads it. pass.after_layer is
    // called for each.
    virtual ggml_tensor * run_layers(Pass & pass, const Timeline & timeline, ggml_tensor * x) const = 0;
    // Heads of the attention layers and their width; for constructors.
    void read_heads();
    // How many values of a head turn with the position.
    int64_t read_rotated() const;
    // The last layer's output is needed: otherwise its work after the KV write can be left out.
    static bool is_output_read(const Pass & pass, int layer);

    Weights weights_;
    std::string prefix_; // "llama."
    int n_threads_ = 0;
    int n_layers_ = 0;
    int64_t n_head_ = 0;
    int64_t n_head_kv_ = 0;
    int64_t head_dim_ = 0;
    int64_t n_embd_ = 0;
    int64_t n_vocab_ = 0;
    int context_tokens_ = 0;
    int64_t n_solve_blocks_ = 1;
    float epsilon_ = 0;
    std::vector<int32_t> stop_tokens_;
    std::vector<KvShape> kv_shapes_;
    std::vector<RecurrentShape> recurrent_shapes_;

  private:
    ggml_tensor * embeddings_ = nullptr;
    Linear head_;
    ggml_tensor * output_norm_ = nullptr;
};

// The head of the model in the file of `weights`: its output.weight or, where that is tied, its embeddings.
Linear add_head(Weights & weights, int64_t n_embd, int64_t n_vocab);

// Architectures, one file each.
std::unique_ptr<Target> open_llama(std::shared_ptr<const ModelFile> file, const Device & device);  // llama, qwen3
std::unique_ptr<Target> open_qwen35(std::shared_ptr<const ModelFile> file, const Device & device); // qwen35

// End of sequence, turn and message: the ids the file names, and texts that model families use for them.
std::vector<int32_t> find_stop_tokens(const ModelFile & file, int64_t n_vocab);

} // namespace dflash
