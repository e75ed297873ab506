// What earlier prompts left in the computer's memory, so that another prompt with the same start need not be read again:
// rows of the KV caches in blocks, which form a tree by their tokens, and recurrent state after some of the tokens. Two
// conversations with a common start share its blocks. Bounded in bytes; what was not asked for the longest goes first, and
// ends go before starts.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace dflash {

// The memory of a cache. What is given up is kept for the next of its size, where that size is a usual one: the system
// clears fresh memory page by page, and on some machines that takes longer than what is copied into it.
struct SavedMemory {
    struct Buffer {
        std::unique_ptr<uint8_t[]> bytes;
        size_t n_bytes = 0;
    };
    using Buffers = std::list<Buffer>; // moved from list to list, which cannot fail

    std::vector<size_t> usual_sizes;
    Buffers spare;               // given up, the last one first
    uint64_t used_bytes = 0;     // not spare
    uint64_t spare_bytes = 0;
    uint64_t fresh_bytes = 0;    // taken from the system so far
    uint64_t held_bytes() const { return used_bytes + spare_bytes; }
};

// Bytes of it that count as used for as long as they live.
class Saved {
  public:
    // From what is spare; nullptr when nothing of that size is.
    static std::shared_ptr<Saved> reuse(const std::shared_ptr<SavedMemory> & memory, size_t n_bytes);
    // From the system; nullptr when that has no memory.
    static std::shared_ptr<Saved> make(const std::shared_ptr<SavedMemory> & memory, size_t n_bytes);
    Saved(std::shared_ptr<SavedMemory> memory, SavedMemory::Buffers own); // of one buffer
    ~Saved();
    Saved(const Saved &) = delete;
    Saved & operator=(const Saved &) = delete;

    uint8_t * data() { return own_.front().bytes.get(); }
    const uint8_t * data() const { return own_.front().bytes.get(); }
    size_t size() const { return own_.front().n_bytes; }

  private:
    std::shared_ptr<SavedMemory> memory_;
    SavedMemory::Buffers own_;
};

// Recurrent state as it was after the first n_tokens of a conversation.
struct Checkpoint {
    int n_tokens = 0;
    std::shared_ptr<const Saved> state;
};

class PrefixCache {
  public:
    struct Shape {
        uint64_t most_bytes = 0;
        int block_tokens = 1;
        uint64_t row_bytes = 0;       // of one token in the target's KV cache, all layers
        uint64_t draft_row_bytes = 0; // and in the draft's
        uint64_t state_bytes = 0;     // of a checkpoint
    };
    // Rows [first, first + n_rows) of a conversation, the first n_draft_rows of them with the draft's.
    struct Piece {
        std::shared_ptr<const Saved> bytes; // target rows, then draft rows; each tensor by tensor
        int first = 0;
        int n_rows = 0;
        int n_draft_rows = 0;
        int n_used = 0; // rows that the prompt shares
    };
    struct Match {
        int n_tokens = 0; // that the prompt shares; with recurrent state: where there is one to go on from
        std::vector<Piece> pieces;
        std::vector<Checkpoint> checkpoints; // up to n_tokens, ascending
    };
    struct Figures {
        uint64_t n_found_tokens = 0; // of all matches that were used
        uint64_t n_saved_tokens = 0;
        uint64_t n_evicted_tokens = 0;
    };
    // Copy rows [first, first + n) of the target's or the draft's cache to `out`, tensor by tensor.
    using ReadRows = std::function<void(bool is_draft, int first, int n, uint8_t * out)>;

    explicit PrefixCache(const Shape & shape);

    // The longest start of `prompt`, at most n_most tokens, that lies here; what it consists of is kept until the next call.
    Match find(const std::vector<int32_t> & prompt, int n_most, bool needs_draft, bool needs_state);
    // Keep a conversation, of whose rows the first n_draft_rows have the draft's. Where there is no room for all of it, its
    // start is kept.
    void save(const std::vector<int32_t> & tokens, int n_draft_rows, const std::vector<Checkpoint> & checkpoints, const ReadRows & read);
    // Room within the bound, if need be in place of what was kept; nullptr when there is none. What is spare counts, too: it
    // goes where it is in the way.
    std::shared_ptr<Saved> allocate(size_t n_bytes);
    void clear();

    const Shape & shape() const { return shape_; }
    uint64_t used_bytes() const { return memory_->held_bytes(); }
    uint64_t fresh_bytes() const { return memory_->fresh_bytes; }
    Figures & figures() { return figures_; }
    const Figures & figures() const { return figures_; }

  private:
    struct Node {
        std::vector<int32_t> tokens;
        int first = 0; // place of the first token in the conversation
        int n_draft_rows = 0;
        std::shared_ptr<const Saved> bytes;
        std::vector<Checkpoint> checkpoints; // after some of the tokens, ascending
        uint64_t last_use = 0;
        uint64_t id = 0;
        Node * parent = nullptr;
        std::vector<std::unique_ptr<Node>> children;
        int n_rows() const { return static_cast<int>(tokens.size()); }
    };
    using Key = std::pair<uint64_t, uint64_t>; // last use, id

    void drop_spare();
    void touch(Node & node);
    void remove_oldest();
    Node & add_child(Node & parent, int first);
    // The longest block that agrees with `n` tokens from `at` on, as far as both go.
    static Node * find_child(const Node & parent, const std::vector<int32_t> & tokens, int at, int n);
    bool fill(Node & node, const std::vector<int32_t> & tokens, int n_rows, int n_draft_rows, const ReadRows & read);
    static Piece piece_of(const Node & node, int n_used);

    Shape shape_;
    std::shared_ptr<SavedMemory> memory_;
    Node root_;
    std::map<Key, Node *> leaves_; // the least recently used first
    uint64_t clock_ = 0;
    uint64_t n_nodes_ = 0;
    Figures figures_;
};

// Places in a prompt of n_rows rows, read from row `from` on, at which recurrent state is worth keeping: every `spacing`
// tokens, and before the end of the first message and of the last two, where later prompts part from this one. All are
// multiples of `unit`, ascending.
std::vector<int> checkpoint_places(const std::vector<int32_t> & prompt, int n_rows, int from, const std::vector<int32_t> & stop_tokens, int unit, int spacing);
// Drop what later prompts will hardly miss: the further back, the fewer remain. At most `most_bytes`.
void thin_checkpoints(std::vector<Checkpoint> & checkpoints, int n_past, int spacing, uint64_t most_bytes);

} // namespace dflash
