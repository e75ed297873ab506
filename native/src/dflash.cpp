// The exported functions: check the arguments, call inwards, turn exceptions into statuses. Nothing else.
#include "dflash.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>

#include "inspect.h"
#include "log.h"
#include "pflash.h"
#include "plan.h"
#include "request.h"
#include "session.h"

using namespace dflash;

struct dflash_file {
    std::shared_ptr<const ModelFile> file;
};

struct dflash_target {
    std::unique_ptr<Target> target;
    bool is_allocated = false;
};

struct dflash_draft {
    std::unique_ptr<Draft> draft;
    bool is_allocated = false;
};

struct dflash_session {
    std::unique_ptr<Session> session;
};

struct dflash_scorer {
    std::unique_ptr<Scorer> scorer;
};

namespace {

thread_local std::string last_error;

// The only try/catch around the engine: whatever happened inwards becomes a status and a sentence.
template <typename Function> int32_t guarded(Function && function) {
    last_error.clear();
    try {
        return function();
    } catch (const Error & error) {
        last_error = error.what();
        return error.status();
    } catch (const std::bad_alloc &) {
        last_error = "Not enough memory.";
        return DFLASH_OUT_OF_MEMORY;
    } catch (const std::exception & error) {
        last_error = std::string("The engine met a bug: ") + error.what();
    } catch (...) {
        last_error = "The engine met a bug.";
    }
    log_line(DFLASH_LOG_ERROR, last_error);
    return DFLASH_INTERNAL;
}

void require(bool condition, const char * what) {
    if (!condition) {
        throw Error(DFLASH_BAD_ARGUMENT, what);
    }
}

template <typename Struct> void check_struct(const Struct * value, const char * name) {
    if (!value) {
        throw Error(DFLASH_BAD_ARGUMENT, format("%s is NULL.", name));
    }
    if (value->size != sizeof(Struct)) {
        throw Error(DFLASH_BAD_ARGUMENT,
                    format("%s.size is %u; this library's is %zu. Library and caller are of different releases.", name, value->size, sizeof(Struct)));
    }
}

// Outputs start from zero, whatever the caller left in them.
template <typename Struct> void clear_output(Struct * out, const char * name) {
    check_struct(out, name);
    std::memset(out, 0, sizeof(Struct));
    out->size = sizeof(Struct);
}

std::vector<int32_t> to_vector(const int32_t * values, int32_t n) {
    require(values && n > 0, "An array of tokens is NULL or empty.");
    return {values, values + n};
}

template <typename Object> bool load_piece(Object & object, bool & is_allocated, dflash_progress * out) {
    if (!is_allocated) {
        object.allocate();
        is_allocated = true;
    }
    const bool has_more = object.load_next();
    out->n_done = object.bytes_done();
    out->n_total = object.bytes_total();
    return !has_more;
}

const Session & session_of(const dflash_session * session) {
    require(session != nullptr, "The session is NULL.");
    return *session->session;
}

Session & session_of(dflash_session * session) {
    require(session != nullptr, "The session is NULL.");
    return *session->session;
}

} // namespace

int32_t dflash_abi_version(void) {
    return DFLASH_ABI_VERSION;
}

uint32_t dflash_struct_size(const char * name) {
    static const std::map<std::string, uint32_t> sizes = {
        {"dflash_log_line", sizeof(dflash_log_line)},
        {"dflash_device", sizeof(dflash_device)},
        {"dflash_file_info", sizeof(dflash_file_info)},
        {"dflash_value", sizeof(dflash_value)},
        {"dflash_load_params", sizeof(dflash_load_params)},
        {"dflash_progress", sizeof(dflash_progress)},
        {"dflash_session_params", sizeof(dflash_session_params)},
        {"dflash_memory", sizeof(dflash_memory)},
        {"dflash_prefixes", sizeof(dflash_prefixes)},
        {"dflash_plan", sizeof(dflash_plan)},
        {"dflash_scorer_params", sizeof(dflash_scorer_params)},
        {"dflash_generation", sizeof(dflash_generation)},
        {"dflash_begun", sizeof(dflash_begun)},
        {"dflash_step", sizeof(dflash_step)},
    };
    const auto found = sizes.find(name ? name : "");
    return found == sizes.end() ? 0 : found->second;
}

const char * dflash_last_error(void) {
    return last_error.c_str();
}

const char * dflash_ggml_version(void) {
    static const std::string version = std::string(ggml_version()) + " (" + ggml_commit() + ")";
    return version.c_str();
}

int32_t dflash_start(const char * backend_dir) {
    return guarded([&] {
        require(backend_dir && *backend_dir, "The folder of the backends is missing.");
        start_backends(backend_dir);
        return DFLASH_OK;
    });
}

int32_t dflash_log_next(dflash_log_line * out) {
    return guarded([&] {
        clear_output(out, "dflash_log_line");
        return take_log_line(*out) ? DFLASH_OK : DFLASH_END;
    });
}

int32_t dflash_log_aborts_to(const char * path) {
    return guarded([&] {
        require(path, "The path is missing.");
        write_aborts_to(path);
        return DFLASH_OK;
    });
}

int32_t dflash_device_count(int32_t * out) {
    return guarded([&] {
        require(out != nullptr, "The result is NULL.");
        *out = device_count();
        return DFLASH_OK;
    });
}

int32_t dflash_device_get(int32_t index, dflash_device * out) {
    return guarded([&] {
        clear_output(out, "dflash_device");
        describe_device(index, *out);
        return DFLASH_OK;
    });
}

int32_t dflash_file_open(const char * path, dflash_file ** out) {
    return guarded([&] {
        require(path && out, "The path or the result is NULL.");
        *out = new dflash_file{ModelFile::open(path)};
        return DFLASH_OK;
    });
}

void dflash_file_close(dflash_file * file) {
    delete file;
}

int32_t dflash_file_describe(const dflash_file * file, dflash_file_info * out) {
    return guarded([&] {
        require(file != nullptr, "The file is NULL.");
        clear_output(out, "dflash_file_info");
        describe_file(file->file, *out);
        return DFLASH_OK;
    });
}

int32_t dflash_file_value(const dflash_file * file, const char * key, dflash_value * out) {
    return guarded([&] {
        require(file && key, "The file or the key is NULL.");
        clear_output(out, "dflash_value");
        const Value * value = file->file->find(key);
        if (!value) {
            return DFLASH_END;
        }
        out->kind = value->kind;
        out->integer = value->integer;
        out->real = value->real;
        out->count = value->count;
        out->data = value->data;
        out->n_bytes = value->n_bytes;
        out->element_bytes = value->element_bytes;
        out->is_signed = value->is_signed ? 1 : 0;
        return DFLASH_OK;
    });
}

int32_t dflash_file_pair(const dflash_file * target, const dflash_file * draft) {
    return guarded([&] {
        require(target && draft, "A file is NULL.");
        require_pair(target->file, draft->file);
        return DFLASH_OK;
    });
}

int32_t dflash_target_open(const char * path, const dflash_load_params * params, dflash_target ** out) {
    return guarded([&] {
        require(path && out, "The path or the result is NULL.");
        check_struct(params, "dflash_load_params");
        auto opened = std::make_unique<dflash_target>();
        opened->target = Target::open(ModelFile::open(path), device_at(params->device), params->n_threads);
        *out = opened.release();
        return DFLASH_OK;
    });
}

int32_t dflash_target_load(dflash_target * target, dflash_progress * out) {
    return guarded([&] {
        require(target != nullptr, "The target is NULL.");
        clear_output(out, "dflash_progress");
        return load_piece(target->target->weights(), target->is_allocated, out) ? DFLASH_OK : DFLASH_MORE;
    });
}

void dflash_target_close(dflash_target * target) {
    delete target;
}

int32_t dflash_target_stop_tokens(const dflash_target * target, int32_t capacity, int32_t * ids, int32_t * n) {
    return guarded([&] {
        require(target && n && capacity >= 0 && (ids || capacity == 0), "The target or the result is NULL.");
        const std::vector<int32_t> & stops = target->target->stop_tokens();
        *n = static_cast<int32_t>(stops.size());
        for (int32_t i = 0; i < capacity && i < *n; ++i) {
            ids[i] = stops[static_cast<size_t>(i)];
        }
        return DFLASH_OK;
    });
}

int32_t dflash_draft_open(const char * path, dflash_target * target, const dflash_load_params * params, dflash_draft ** out) {
    return guarded([&] {
        require(path && target && out, "The path, the target or the result is NULL.");
        check_struct(params, "dflash_load_params");
        auto opened = std::make_unique<dflash_draft>();
        opened->draft = std::make_unique<Draft>(ModelFile::open(path), *target->target, place_of(*params, *target->target));
        *out = opened.release();
        return DFLASH_OK;
    });
}

int32_t dflash_draft_load(dflash_draft * draft, dflash_progress * out) {
    return guarded([&] {
        require(draft != nullptr, "The draft is NULL.");
        clear_output(out, "dflash_progress");
        return load_piece(*draft->draft, draft->is_allocated, out) ? DFLASH_OK : DFLASH_MORE;
    });
}

void dflash_draft_close(dflash_draft * draft) {
    delete draft;
}

int32_t dflash_plan_pair(const char * target_path, const char * draft_path, const dflash_load_params * load, const dflash_load_params * draft_load,
                         const dflash_session_params * session, dflash_plan * out) {
    return guarded([&] {
        require(target_path != nullptr, "The path is NULL.");
        check_struct(load, "dflash_load_params");
        if (draft_load) {
            check_struct(draft_load, "dflash_load_params");
        }
        check_struct(session, "dflash_session_params");
        clear_output(out, "dflash_plan");
        plan_pair(ModelFile::open(target_path), draft_path ? ModelFile::open(draft_path) : nullptr, *load, draft_load ? *draft_load : *load, *session, *out);
        return DFLASH_OK;
    });
}

int32_t dflash_session_open(dflash_target * target, dflash_draft * draft, const dflash_session_params * params, dflash_session ** out) {
    return guarded([&] {
        require(target && out, "The target or the result is NULL.");
        check_struct(params, "dflash_session_params");
        if (!target->target->weights().is_loaded() || (draft && !draft->draft->is_loaded())) {
            throw Error(DFLASH_BAD_STATE, "The model is not loaded yet: call dflash_target_load and dflash_draft_load until they return DFLASH_OK.");
        }
        auto opened = std::make_unique<dflash_session>();
        opened->session = std::make_unique<Session>(*target->target, draft ? draft->draft.get() : nullptr, *params);
        *out = opened.release();
        return DFLASH_OK;
    });
}

void dflash_session_close(dflash_session * session) {
    delete session;
}

int32_t dflash_session_memory(const dflash_session * session, dflash_memory * out) {
    return guarded([&] {
        clear_output(out, "dflash_memory");
        session_of(session).fill_memory(*out);
        return DFLASH_OK;
    });
}

int32_t dflash_session_prefixes(const dflash_session * session, dflash_prefixes * out) {
    return guarded([&] {
        clear_output(out, "dflash_prefixes");
        session_of(session).fill_prefixes(*out);
        return DFLASH_OK;
    });
}

int32_t dflash_session_tuning(const dflash_session * session, int32_t capacity, double * values, int32_t * n) {
    return guarded([&] {
        require(n && capacity >= 0 && (values || capacity == 0), "The result is NULL.");
        const std::vector<double> tuning = session_of(session).tuning();
        *n = static_cast<int32_t>(tuning.size());
        std::copy_n(tuning.begin(), std::min(tuning.size(), static_cast<size_t>(capacity)), values);
        return DFLASH_OK;
    });
}

int32_t dflash_session_begin(dflash_session * session, const int32_t * prompt, int32_t n_prompt, const dflash_generation * generation, dflash_begun * out) {
    return guarded([&] {
        check_struct(generation, "dflash_generation");
        clear_output(out, "dflash_begun");
        session_of(session).begin(to_vector(prompt, n_prompt), *generation, *out);
        return DFLASH_OK;
    });
}

int32_t dflash_session_prefill(dflash_session * session, dflash_progress * out) {
    return guarded([&] {
        clear_output(out, "dflash_progress");
        return session_of(session).prefill(*out) ? DFLASH_OK : DFLASH_MORE;
    });
}

int32_t dflash_session_step(dflash_session * session, dflash_step * out) {
    return guarded([&] {
        clear_output(out, "dflash_step");
        return session_of(session).step(*out) ? DFLASH_END : DFLASH_OK;
    });
}

int32_t dflash_session_propose(dflash_session * session, dflash_step * out) {
    return guarded([&] {
        clear_output(out, "dflash_step");
        session_of(session).propose(*out);
        return DFLASH_OK;
    });
}

int32_t dflash_session_likeliest(dflash_session * session, int32_t index, int32_t k, int32_t * ids, float * logprobs) {
    return guarded([&] {
        if (!ids || !logprobs) {
            throw Error(DFLASH_BAD_ARGUMENT, "There is no room for the likeliest tokens.");
        }
        session_of(session).likeliest(index, k, ids, logprobs);
        return DFLASH_OK;
    });
}

int32_t dflash_session_settle(dflash_session * session, int32_t n_keep, const uint32_t * allowed, int32_t n_words, dflash_step * out) {
    return guarded([&] {
        clear_output(out, "dflash_step");
        return session_of(session).settle(n_keep, allowed, n_words, *out) ? DFLASH_END : DFLASH_OK;
    });
}

void dflash_session_cancel(dflash_session * session) {
    if (session) {
        session->session->cancel();
    }
}

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
        require(scorer != nullptr, "The scorer is NULL.");
        clear_output(out, "dflash_memory");
        scorer->scorer->fill_memory(*out);
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
        require(scorer != nullptr, "The scorer is NULL.");
        std::vector<int32_t> questions = to_vector(question, n_question);
        std::vector<float> own_weights = weights ? std::vector<float>(weights, weights + n_question) : std::vector<float>();
        scorer->scorer->begin(to_vector(text, n_text), questions, own_weights);
        return DFLASH_OK;
    });
}

int32_t dflash_scorer_run(dflash_scorer * scorer, dflash_progress * out) {
    return guarded([&] {
        require(scorer != nullptr, "The scorer is NULL.");
        clear_output(out, "dflash_progress");
        return scorer->scorer->advance(*out) ? DFLASH_OK : DFLASH_MORE;
    });
}

int32_t dflash_scorer_masses(const dflash_scorer * scorer, float * out, int32_t n_text) {
    return guarded([&] {
        require(scorer && out, "The scorer or the result is NULL.");
        const std::vector<float> & masses = scorer->scorer->masses();
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
