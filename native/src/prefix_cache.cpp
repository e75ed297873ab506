// Keeping and finding starts of conversations; see prefix_cache.h.
#include "prefix_cache.h"

#include <algorithm>
#include <new>

namespace dflash {

namespace {

constexpr size_t kNewest = 4; // checkpoints that are never thinned out: the last prompts' ends

// How many of `tokens` from `at` on are those of `node_tokens`, at most n.
int n_alike(const std::vector<int32_t> & node_tokens, const std::vector<int32_t> & tokens, int at, int n) {
    const int most = std::min(n, static_cast<int>(node_tokens.size()));
    int i = 0;
    while (i < most && node_tokens[static_cast<size_t>(i)] == tokens[static_cast<size_t>(at + i)]) {
        ++i;
    }
    return i;
}

uint64_t bytes_of(const std::vector<Checkpoint> & checkpoints) {
    uint64_t bytes = 0;
    for (const Checkpoint & checkpoint : checkpoints) {
        bytes += checkpoint.state->size();
    }
    return bytes;
}

} // namespace

std::shared_ptr<Saved> Saved::reuse(const std::shared_ptr<SavedMemory> & memory, size_t n_bytes) {
    SavedMemory::Buffers & spare = memory->spare;
    const auto found = std::find_if(spare.begin(), spare.end(), [n_bytes](const SavedMemory::Buffer & buffer) { return buffer.n_bytes == n_bytes; });
    if (found == spare.end()) {
        return nullptr;
    }
    SavedMemory::Buffers own;
    own.splice(own.begin(), spare, found);
    memory->spare_bytes -= n_bytes;
    return std::make_shared<Saved>(memory, std::move(own));
}

std::shared_ptr<Saved> Saved::make(const std::shared_ptr<SavedMemory> & memory, size_t n_bytes) {
    std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[n_bytes]);
    if (!bytes) {
        return nullptr;
    }
    SavedMemory::Buffers own;
    own.push_back({std::move(bytes), n_bytes});
    memory->fresh_bytes += n_bytes;
    return std::make_shared<Saved>(memory, std::move(own));
}

Saved::Saved(std::shared_ptr<SavedMemory> memory, SavedMemory::Buffers own) : memory_(std::move(memory)), own_(std::move(own)) {
    memory_->used_bytes += size();
}

Saved::~Saved() {
    const std::vector<size_t> & usual = memory_->usual_sizes;
    memory_->used_bytes -= size();
    if (std::find(usual.begin(), usual.end(), size()) != usual.end()) {
        memory_->spare_bytes += size();
        memory_->spare.splice(memory_->spare.begin(), own_);
    }
}

PrefixCache::PrefixCache(const Shape & shape) : shape_(shape), memory_(std::make_shared<SavedMemory>()) {
    const auto n_rows = static_cast<size_t>(shape.block_tokens);
    // Checkpoints, and full blocks with and without the draft's rows.
    memory_->usual_sizes = {shape.state_bytes, n_rows * (shape.row_bytes + shape.draft_row_bytes), n_rows * shape.row_bytes};
}

PrefixCache::Piece PrefixCache::piece_of(const Node & node, int n_used) {
    return {node.bytes, node.first, node.n_rows(), node.n_draft_rows, n_used};
}

PrefixCache::Match PrefixCache::find(const std::vector<int32_t> & prompt, int n_most, bool needs_draft, bool needs_state) {
    ++clock_;
    Match best;
    Match path; // as far as whole blocks agree
    const Node * node = &root_;
    while (true) {
        Node * longest = nullptr;
        int n_longest = 0;
        for (const std::unique_ptr<Node> & child : node->children) {
            int n = n_alike(child->tokens, prompt, path.n_tokens, n_most - path.n_tokens);
            n = needs_draft ? std::min(n, child->n_draft_rows) : n;
            if (n > n_longest) {
                longest = child.get();
                n_longest = n;
            }
            for (size_t i = child->checkpoints.size(); needs_state && i-- > 0;) {
                const int place = child->checkpoints[i].n_tokens;
                if (place - path.n_tokens > n) {
                    continue;
                }
                if (place > best.n_tokens) {
                    best = path;
                    best.n_tokens = place;
                    best.pieces.push_back(piece_of(*child, place - path.n_tokens));
                    best.checkpoints.insert(best.checkpoints.end(), child->checkpoints.begin(), child->checkpoints.begin() + static_cast<ptrdiff_t>(i) + 1);
                    touch(*child);
                }
                break;
            }
        }
        if (!longest) {
            break;
        }
        touch(*longest);
        path.n_tokens += n_longest;
        path.pieces.push_back(piece_of(*longest, n_longest));
        path.checkpoints.insert(path.checkpoints.end(), longest->checkpoints.begin(), longest->checkpoints.end());
        if (n_longest < longest->n_rows() || n_longest < shape_.block_tokens) {
            break;
        }
        node = longest;
    }
    return needs_state ? best : path;
}

PrefixCache::Node * PrefixCache::find_child(const Node & parent, const std::vector<int32_t> & tokens, int at, int n) {
    Node * found = nullptr;
    for (const std::unique_ptr<Node> & child : parent.children) {
        const bool is_same = n_alike(child->tokens, tokens, at, n) == std::min(n, child->n_rows());
        found = is_same && (!found || child->n_rows() > found->n_rows()) ? child.get() : found;
    }
    return found;
}

void PrefixCache::save(const std::vector<int32_t> & tokens, int n_draft_rows, const std::vector<Checkpoint> & checkpoints, const ReadRows & read) {
    const int n = static_cast<int>(tokens.size());
    Node * node = &root_;
    for (int at = 0; at < n; at += shape_.block_tokens) {
        const int n_rows = std::min(shape_.block_tokens, n - at);
        const int n_draft = std::clamp(n_draft_rows - at, 0, n_rows);
        Node * child = find_child(*node, tokens, at, n_rows);
        const bool is_longer = !child || child->n_rows() < n_rows;
        if (is_longer || (child->n_rows() == n_rows && child->n_draft_rows < n_draft)) {
            const bool is_new = !child;
            child = child ? child : &add_child(*node, at);
            touch(*child); // not to be evicted for itself
            if (!fill(*child, tokens, n_rows, n_draft, read)) {
                if (is_new) {
                    leaves_.erase({child->last_use, child->id});
                    node->children.pop_back();
                    touch(*node);
                }
                return;
            }
        }
        touch(*child);
        for (const Checkpoint & checkpoint : checkpoints) {
            const auto place = std::lower_bound(child->checkpoints.begin(), child->checkpoints.end(), checkpoint,
                                                [](const Checkpoint & a, const Checkpoint & b) { return a.n_tokens < b.n_tokens; });
            const bool is_here = checkpoint.n_tokens > at && checkpoint.n_tokens <= at + n_rows;
            if (is_here && (place == child->checkpoints.end() || place->n_tokens != checkpoint.n_tokens)) {
                child->checkpoints.insert(place, checkpoint);
            }
        }
        node = child;
    }
}

// Give a block its tokens and rows, more than it had. False, and nothing changed, when there is no room.
bool PrefixCache::fill(Node & node, const std::vector<int32_t> & tokens, int n_rows, int n_draft_rows, const ReadRows & read) {
    const size_t target_bytes = static_cast<size_t>(n_rows) * shape_.row_bytes;
    const std::shared_ptr<Saved> bytes = allocate(target_bytes + static_cast<size_t>(n_draft_rows) * shape_.draft_row_bytes);
    if (!bytes) {
        return false;
    }
    read(false, node.first, n_rows, bytes->data());
    if (n_draft_rows > 0) {
        read(true, node.first, n_draft_rows, bytes->data() + target_bytes);
    }
    figures_.n_saved_tokens += static_cast<uint64_t>(n_rows);
    node.tokens.assign(tokens.begin() + node.first, tokens.begin() + node.first + n_rows);
    node.n_draft_rows = n_draft_rows;
    node.bytes = bytes;
    return true;
}

std::shared_ptr<Saved> PrefixCache::allocate(size_t n_bytes) {
    if (n_bytes > shape_.most_bytes) {
        return nullptr;
    }
    while (true) {
        if (std::shared_ptr<Saved> again = Saved::reuse(memory_, n_bytes)) {
            return again;
        }
        if (memory_->used_bytes + n_bytes <= shape_.most_bytes) {
            break;
        }
        // What this request found or saved is not given up for more of it.
        if (leaves_.empty() || leaves_.begin()->first.first == clock_) {
            return nullptr;
        }
        remove_oldest();
    }
    while (memory_->held_bytes() + n_bytes > shape_.most_bytes) {
        drop_spare(); // of other sizes
    }
    return Saved::make(memory_, n_bytes);
}

// Give the system back what has been spare for the longest.
void PrefixCache::drop_spare() {
    memory_->spare_bytes -= memory_->spare.back().n_bytes;
    memory_->spare.pop_back();
}

void PrefixCache::clear() {
    leaves_.clear();
    root_.children.clear();
    while (!memory_->spare.empty()) {
        drop_spare();
    }
}

PrefixCache::Node & PrefixCache::add_child(Node & parent, int first) {
    if (parent.parent && parent.children.empty()) {
        leaves_.erase({parent.last_use, parent.id});
    }
    auto child = std::make_unique<Node>();
    child->first = first;
    child->id = ++n_nodes_;
    child->parent = &parent;
    parent.children.push_back(std::move(child));
    return *parent.children.back();
}

void PrefixCache::touch(Node & node) {
    if (!node.parent) {
        return; // the root holds nothing
    }
    leaves_.erase({node.last_use, node.id});
    node.last_use = clock_;
    if (node.children.empty()) {
        leaves_[{node.last_use, node.id}] = &node;
    }
}

void PrefixCache::remove_oldest() {
    Node * node = leaves_.begin()->second;
    Node * parent = node->parent;
    leaves_.erase(leaves_.begin());
    figures_.n_evicted_tokens += static_cast<uint64_t>(node->n_rows());
    const auto is_it = [node](const std::unique_ptr<Node> & child) { return child.get() == node; };
    parent->children.erase(std::find_if(parent->children.begin(), parent->children.end(), is_it));
    if (parent->parent && parent->children.empty()) {
        leaves_[{parent->last_use, parent->id}] = parent;
    }
}

std::vector<int> checkpoint_places(const std::vector<int32_t> & prompt, int n_rows, int from, const std::vector<int32_t> & stop_tokens, int unit, int spacing) {
    std::vector<int> places;
    const int most = n_rows - unit; // the end of the prompt itself is kept anyway
    for (int place = spacing; place <= most; place += spacing) {
        places.push_back(place);
    }
    std::vector<int> ends; // of messages, before the prompt's last unit
    for (int i = 0; i < n_rows; ++i) {
        const int place = (i + 1) / unit * unit;
        if (place > 0 && place <= most && std::binary_search(stop_tokens.begin(), stop_tokens.end(), prompt[static_cast<size_t>(i)])) {
            ends.push_back(place);
        }
    }
    if (!ends.empty()) {
        places.push_back(ends.front());
        places.insert(places.end(), ends.end() - std::min<ptrdiff_t>(2, static_cast<ptrdiff_t>(ends.size())), ends.end());
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    places.erase(places.begin(), std::upper_bound(places.begin(), places.end(), from));
    return places;
}

void thin_checkpoints(std::vector<Checkpoint> & checkpoints, int n_past, int spacing, uint64_t most_bytes) {
    std::vector<Checkpoint> kept; // newest first
    for (size_t i = checkpoints.size(); i-- > 0;) {
        const int place = checkpoints[i].n_tokens;
        const int least_gap = std::max(spacing, (n_past - place) / 4);
        // The first one is mostly the end of what every conversation of a program starts with.
        if (i == 0 || kept.size() < kNewest || kept.back().n_tokens - place >= least_gap) {
            kept.push_back(checkpoints[i]);
        }
    }
    std::reverse(kept.begin(), kept.end());
    while (!kept.empty() && bytes_of(kept) > most_bytes) {
        size_t least = 0; // whose loss costs the fewest tokens: closest to the one before it
        for (size_t i = 1; i < kept.size(); ++i) {
            const int gap = kept[i].n_tokens - kept[i - 1].n_tokens;
            least = least == 0 || gap < kept[least].n_tokens - kept[least - 1].n_tokens ? i : least;
        }
        kept.erase(kept.begin() + static_cast<ptrdiff_t>(least));
    }
    checkpoints = std::move(kept);
}

} // namespace dflash
