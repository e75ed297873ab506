// The exported functions of scorers.
#include <algorithm>

#include "boundary.h"

using namespace dflash;

int32_t dflash_scorer_open(dflash_target * target, const dflash_scorer_params * params, dflash_scorer ** out) {
    return guarded([&] {
        require(target && out, "The target or the result is NULL.");
        check_struct(params, "dflash_scorer_params");
        if (!target->target->weights().is_loaded()) {
            throw Error(DFLASH_BAD_STATE, "The model is not loaded yet: call dflash_target_load until it returns DFLASH_OK.");
        }
        auto opened = std::make_unique<dflash_scorer>();
        opened->scorer = std::make_unique<Scorer>(*target->target, *params);
        *out = opened.release();
        return DFLASH_OK;
    });
}

void dflash_scorer_close(dflash_scorer * scorer) {
    delete scorer;
}

int32_t dflash_scorer_memory(const dflash_scorer * scorer, dflash_memory * out) {
    return guarded([&] {
        clear_output(out, "dflash_memory");
        scorer_of(scorer).fill_memory(*out);
        return DFLASH_OK;
    });
}

int32_t dflash_plan_scorer(const char * target_path, const dflash_load_params * load, const dflash_scorer_params * params, dflash_memory * out) {
    return guarded([&] {
        require(target_path != nullptr, "The path is NULL.");
        check_struct(load, "dflash_load_params");
        check_struct(params, "dflash_scorer_params");
        clear_output(out, "dflash_memory");
        const std::unique_ptr<Target> target = Target::open(ModelFile::open(target_path), device_at(load->device), load->n_threads);
        target->weights().pretend();
        Scorer(*target, *params, true).fill_memory(*out);
        return DFLASH_OK;
    });
}

int32_t dflash_scorer_begin(dflash_scorer * scorer, const int32_t * text, int32_t n_text, const int32_t * question, int32_t n_question, const float * weights) {
    return guarded([&] {
        std::vector<int32_t> questions = to_vector(question, n_question);
        std::vector<float> own_weights = weights ? std::vector<float>(weights, weights + n_question) : std::vector<float>();
        scorer_of(scorer).begin(to_vector(text, n_text), questions, own_weights);
        return DFLASH_OK;
    });
}

int32_t dflash_scorer_run(dflash_scorer * scorer, dflash_progress * out) {
    return guarded([&] {
        clear_output(out, "dflash_progress");
        return scorer_of(scorer).advance(*out) ? DFLASH_OK : DFLASH_MORE;
    });
}

int32_t dflash_scorer_masses(const dflash_scorer * scorer, float * out, int32_t n_text) {
    return guarded([&] {
        require(out != nullptr, "The result is NULL.");
        const std::vector<float> & masses = scorer_of(scorer).masses();
        require(static_cast<size_t>(n_text) == masses.size(), "The text has another number of tokens.");
        std::copy(masses.begin(), masses.end(), out);
        return DFLASH_OK;
    });
}

void dflash_scorer_cancel(dflash_scorer * scorer) {
    if (scorer) {
        scorer->scorer->cancel();
    }
}
