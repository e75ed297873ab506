// The exported probes.
#include <cstring>

#include "boundary.h"
#include "request.h"

using namespace dflash;

int32_t dflash_probe_reset(dflash_session * session) {
    return guarded([&] {
        session_of(session).reset();
        return DFLASH_OK;
    });
}

int32_t dflash_probe_append(dflash_session * session, const int32_t * tokens, int32_t n, float * logits) {
    return guarded([&] {
        session_of(session).probe_append(to_vector(tokens, n), logits);
        return DFLASH_OK;
    });
}

int32_t dflash_probe_draft(dflash_session * session, int32_t root, int32_t block_size, int32_t k, int32_t * ids, float * logprobs, float * hidden) {
    return guarded([&] {
        Session & own = session_of(session);
        require(ids && logprobs && k > 0 && k <= own.target().n_vocab(), "k is out of range, or a result is NULL.");
        require(root >= 0 && root < own.target().n_vocab(), "The root is not a token.");
        const Marginals marginals = own.probe_draft(root, block_size, k, hidden);
        std::memcpy(ids, marginals.ids.data(), marginals.ids.size() * sizeof(int32_t));
        std::memcpy(logprobs, marginals.logprobs.data(), marginals.logprobs.size() * sizeof(float));
        return DFLASH_OK;
    });
}

int32_t dflash_probe_verify(dflash_session * session, const int32_t * tokens, const int32_t * parents, int32_t n_rows, float * logits) {
    return guarded([&] {
        session_of(session).probe_verify(to_vector(tokens, n_rows), to_vector(parents, n_rows), logits);
        return DFLASH_OK;
    });
}

int32_t dflash_probe_commit(dflash_session * session, const int32_t * rows, int32_t n_rows) {
    return guarded([&] {
        session_of(session).probe_commit(to_vector(rows, n_rows));
        return DFLASH_OK;
    });
}

int32_t dflash_probe_sample(const float * logits, int32_t n_vocab, const int32_t * history, int32_t n_history, const dflash_generation * generation, int32_t n,
                            int32_t * out) {
    return guarded([&] {
        require(logits && out && n_vocab > 0 && n >= 0 && n_history >= 0, "An array is NULL or empty.");
        check_struct(generation, "dflash_generation");
        Sampler sampler(sampler_params(*generation), n_vocab);
        sampler.begin(n_history > 0 ? to_vector(history, n_history) : std::vector<int32_t>());
        for (int32_t i = 0; i < n; ++i) {
            out[i] = sampler.choose(logits, {});
            sampler.skip_draws(1); // the next draw, after the same history
        }
        return DFLASH_OK;
    });
}
