// Describing model files; see inspect.h.
#include "inspect.h"

#include <algorithm>
#include <map>

#include "draft.h"
#include "model_text.h"
#include "targets/target.h"

namespace dflash {

void describe_file(const std::shared_ptr<const ModelFile> & file, dflash_file_info & out) {
    const std::string & architecture = file->architecture();
    const std::string prefix = architecture + ".";
    out.role = is_draft_architecture(architecture) ? DFLASH_ROLE_DRAFT : Target::knows(architecture) ? DFLASH_ROLE_TARGET : DFLASH_ROLE_OTHER;
    out.mask_token = -1;
    out.file_bytes = file->file_bytes();
    copy_text(out.architecture, sizeof(out.architecture), architecture);
    std::map<ggml_type, uint64_t> bytes_by_type;
    for (const TensorInfo & tensor : file->tensors()) {
        out.n_parameters += static_cast<uint64_t>(tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3]);
        bytes_by_type[tensor.type] += tensor.n_bytes;
    }
    const auto most = std::max_element(bytes_by_type.begin(), bytes_by_type.end(), [](const auto & a, const auto & b) { return a.second < b.second; });
    copy_text(out.quantization, sizeof(out.quantization), most == bytes_by_type.end() ? "" : ggml_type_name(most->first));

    // A wrong value is a reason not to run, not a reason to describe nothing.
    try {
        copy_text(out.name, sizeof(out.name), file->text("general.name").value_or(""));
        const auto number = [&](const char * key) { return static_cast<int32_t>(file->integer(prefix + key, 0, INT32_MAX).value_or(0)); };
        out.n_layers = number("block_count");
        out.n_embd = number("embedding_length");
        out.context_tokens = number("context_length");
        if (const Value * tokens = file->find("tokenizer.ggml.tokens")) {
            out.n_vocab = static_cast<int32_t>(std::min<uint64_t>(tokens->count, INT32_MAX));
        }
        if (out.role == DFLASH_ROLE_DRAFT) {
            const DraftConfig config = read_draft_config(*file);
            out.block_size = config.block_size;
            out.mask_token = config.mask_token;
            out.n_feature_layers = static_cast<int32_t>(config.feature_layers.size());
            std::copy(config.feature_layers.begin(), config.feature_layers.end(), out.feature_layers);
        } else {
            // The same checks as a load; throws with the reason.
            Target::open(file, cpu_device(), 1);
        }
        out.can_run = 1;
    } catch (const Error & error) {
        if (error.status() == DFLASH_OUT_OF_MEMORY) {
            throw;
        }
        copy_text(out.reason, sizeof(out.reason), error.what());
    }
}

void require_pair(const std::shared_ptr<const ModelFile> & target_file, const std::shared_ptr<const ModelFile> & draft_file) {
    const std::unique_ptr<Target> target = Target::open(target_file, cpu_device(), 1);
    Draft(draft_file, *target, {target->device(), 0, false}); // the same checks as a load
}

} // namespace dflash
