// Whether drafting pays here: on while it gains, off when it loses against plain decoding, and then a draft now and then, ever
// rarer, to see whether the text has become easier. Standard library only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "repetition.h"
#include "step_times.h"

namespace dflash {

// Costs and advantages are in tokens: what plain decoding would have brought in the same time.
class DraftSwitch {
  public:
    DraftSwitch();

    enum class Decision {
        kDraft,
        kProbe,  // a draft to see whether it would pay again
        kPlain,  // drafting is slower here
        kMeasure // a plain step, so that its time stays known
    };
    // For the next step; `cost` is that of its draft.
    Decision decide(const StepTimes & times, double cost);

    // Another prompt: what its text is like has to be found out.
    void begin_reply(const std::vector<int32_t> & prompt);
    // What a step committed, whoever chose it.
    void hear(const std::vector<int32_t> & tokens) { repetition_.add(tokens); }

    // The draft just made promises `advantage` over the plain step whose place it took; `largest_cost` is that of the largest
    // draft there is.
    void observe_advantage(double advantage, double largest_cost);
    // What a speculative step brought.
    void observe_step(double n_tokens, double us);
    // Tokens that a step of our own choice committed: some of their time may go into drafts in vain.
    void earn(int n_tokens);

    // Speculative throughput of late; 0 before the first such step.
    double tokens_per_us() const;
    // The same over plain throughput, or as it was when drafting was last switched off; 0 when unknown.
    double measured_speed_up(const StepTimes & times) const;

    bool is_on() const { return is_on_; }
    // Go on as an earlier session left off.
    void remember(bool is_on, double speed_up);

  private:
    // Tokens and microseconds of speculative steps, older ones fading.
    struct Rate {
        double decay = 1;
        double tokens = 0, token_squares = 0, us = 0, weight = 0, weight_squares = 0;
        void add(double n_tokens, double n_us);
        void clear();
        double n_steps() const; // as many steps of equal weight would be as certain
    };

    double speed_up(const StepTimes & times, const Rate & rate, double n_errors) const;
    bool is_losing(const StepTimes & times) const;
    bool should_refresh_plain(const StepTimes & times) const;
    bool should_probe(double cost);
    void switch_on();
    void switch_off(const StepTimes & times);

    std::array<Rate, 3> rates_; // short, middle, long memory
    double last_speed_up_ = 0;   // when drafting was last switched off
    bool is_on_ = true;
    bool is_probing_ = false;
    double slump_ = 0; // how far the sum of advantages is below its highest
    double purse_ = 0; // tokens that drafts in vain may still cost
    bool has_purse_ = false;
    int n_spec_since_on_ = 0, n_plain_since_probe_ = 0, probe_wait_ = 0;
    Repetition repetition_;
    double probed_share_ = 0; // repetition at the last draft in vain
};

} // namespace dflash
