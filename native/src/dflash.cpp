// The exported functions: check the arguments and call inwards. Those of scorers and probes: dflash_scorer.cpp, dflash_probes.cpp.
#include "dflash.h"

#include <algorithm>
#include <map>

#include "boundary.h"
#include "inspect.h"
#include "log.h"
#include "plan.h"

using namespace dflash;

namespace {

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

} // namespace

int32_t dflash_abi_version(void) {
    return DFLASH_ABI_VERSION;
}

uint32_t dflash_struct_size(const char * name) {
    static const std::map<std::string, uint32_t> sizes = {
        {"dflash_failure", sizeof(dflash_failure)},
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
    return last_sentence();
}

int32_t dflash_last_failure(dflash_failure * out) {
    if (!out || out->size != sizeof(*out)) {
        return DFLASH_BAD_ARGUMENT; // no failure to be noted: that would be another one
    }
    *out = last_numbers();
    return DFLASH_OK;
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
