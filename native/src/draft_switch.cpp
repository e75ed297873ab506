// On or off, from what speculative steps brought; see draft_switch.h.

#include "draft_switch.h"

#include <algorithm>
#include <cmath>

namespace dflash {
namespace {

constexpr int kSettled = 4; // samples after which a time is believed

// A draft in vain costs time, and hopeless text must not cost more than 2 %: what may be wasted is saved up.
constexpr double kPursePerToken = 0.01; // tokens per token
constexpr double kPursePerGain = 0.25;  // of what drafting gains
constexpr double kFirstPurse = 1.5;     // in drafts, as are the next two
constexpr double kMostPurse = 6;
constexpr double kMostDebt = 1;
constexpr double kShareStep = 0.3; // more repetition than at the last draft in vain is worth another
constexpr double kSlump = 2;       // lost in a row before drafting is switched off
constexpr int kFirstWait = 4;      // plain steps before the first probe of a reply, or after a switch
constexpr int kLastWait = 256;
constexpr int kLeastEvidence = 8;  // speculative steps before what they brought may switch drafting off

} // namespace

DraftSwitch::DraftSwitch() : probe_wait_(kFirstWait) {
    rates_[0].decay = 0.95;
    rates_[1].decay = 0.9875;
    rates_[2].decay = 0.998;
}

void DraftSwitch::Rate::add(double n_tokens, double n_us) {
    tokens = decay * tokens + n_tokens;
    token_squares = decay * token_squares + n_tokens * n_tokens;
    us = decay * us + n_us;
    weight = decay * weight + 1;
    weight_squares = decay * decay * weight_squares + 1;
}

void DraftSwitch::Rate::clear() {
    tokens = token_squares = us = weight = weight_squares = 0;
}

double DraftSwitch::Rate::n_steps() const {
    return weight_squares > 0 ? weight * weight / weight_squares : 0;
}

// Speculative over plain throughput, `n_errors` standard errors above the estimate; 0 when unknown.
double DraftSwitch::speed_up(const StepTimes & times, const Rate & rate, double n_errors) const {
    const double plain_us = times.verify_us(1);
    if (rate.us <= 0 || plain_us <= 0) {
        return 0;
    }
    const double mean = rate.tokens / rate.weight;
    const double squares = std::max(rate.token_squares / rate.weight - mean * mean, 0.0);
    const double n = rate.n_steps();
    const double variance = (n * squares + 1.0) / (n + 1.0); // one step's worth of prior, against luck
    const double tokens = mean + n_errors * std::sqrt(variance / std::max(n, 1.0));
    return tokens * plain_us / (rate.us / rate.weight);
}

bool DraftSwitch::is_losing(const StepTimes & times) const {
    if (n_spec_since_on_ < kLeastEvidence) {
        return false;
    }
    return speed_up(times, rates_[0], 2.0) < 1.0 || speed_up(times, rates_[1], 1.5) < 1.0 || speed_up(times, rates_[2], 1.0) < 1.0;
}

double DraftSwitch::measured_speed_up(const StepTimes & times) const {
    const double now = speed_up(times, rates_[1], 0);
    return now > 0 ? now : last_speed_up_;
}

// The price of plain steps that keep its time known: what speculation would have gained. Rare where it gains much.
bool DraftSwitch::should_refresh_plain(const StepTimes & times) const {
    const double gain = std::max(speed_up(times, rates_[1], 0) - 1.0, 0.0);
    const double most = times.n_samples(0) < kSettled ? 48.0 : 512.0;
    const double wait = std::clamp(gain / (1.0 + gain) / 0.005, 24.0, most);
    return static_cast<double>(times.age(0)) >= wait;
}

void DraftSwitch::begin_reply(const std::vector<int32_t> & prompt) {
    repetition_.begin(prompt);
    probed_share_ = 0;
    probe_wait_ = std::min(probe_wait_, kFirstWait);
    n_plain_since_probe_ = 0;
    slump_ = 0;
}

void DraftSwitch::switch_on() {
    is_on_ = true;
    n_spec_since_on_ = 0;
    slump_ = 0;
    for (Rate & rate : rates_) {
        rate.clear(); // the text has changed
    }
}

void DraftSwitch::switch_off(const StepTimes & times) {
    is_on_ = false;
    n_plain_since_probe_ = 0;
    probe_wait_ = kFirstWait;
    last_speed_up_ = measured_speed_up(times);
}

DraftSwitch::Decision DraftSwitch::decide(const StepTimes & times, double cost) {
    is_probing_ = false;
    if (!times.is_known(0)) {
        return Decision::kMeasure;
    }
    if (!has_purse_) {
        purse_ = kFirstPurse * cost;
        has_purse_ = true;
    }
    if (is_on_ && (slump_ > kSlump * cost || is_losing(times))) {
        switch_off(times);
        return Decision::kPlain;
    }
    if (is_on_) {
        return should_refresh_plain(times) ? Decision::kMeasure : Decision::kDraft;
    }
    if (!should_probe(cost)) {
        return Decision::kPlain;
    }
    n_plain_since_probe_ = 0;
    is_probing_ = true;
    return Decision::kProbe;
}

bool DraftSwitch::should_probe(double cost) {
    ++n_plain_since_probe_;
    if (n_plain_since_probe_ > probe_wait_ && purse_ >= cost) {
        return true;
    }
    // The text has begun to repeat itself: that is worth a debt.
    return n_plain_since_probe_ > kFirstWait && repetition_.share() > probed_share_ + kShareStep && purse_ >= -kMostDebt * cost;
}

// What the draft just made promises, against the plain step that it took the place of.
void DraftSwitch::observe_advantage(double advantage, double largest_cost) {
    purse_ += advantage > 0 ? kPursePerGain * advantage : advantage;
    purse_ = std::min(purse_, kMostPurse * largest_cost);
    slump_ = std::max(slump_ - advantage, 0.0);
    probed_share_ = advantage > 0 ? 0 : repetition_.share();
    if (!is_probing_) {
        return;
    }
    if (advantage > 0) {
        switch_on();
    } else {
        probe_wait_ = std::min(2 * probe_wait_, kLastWait);
    }
}

void DraftSwitch::observe_step(double n_tokens, double us) {
    for (Rate & rate : rates_) {
        rate.add(n_tokens, us);
    }
    ++n_spec_since_on_;
}

void DraftSwitch::earn(int n_tokens) {
    purse_ += kPursePerToken * n_tokens;
}

double DraftSwitch::tokens_per_us() const {
    return rates_[1].us > 0 ? rates_[1].tokens / rates_[1].us : 0;
}

void DraftSwitch::remember(bool is_on, double speed_up) {
    is_on_ = is_on;
    last_speed_up_ = speed_up;
}

} // namespace dflash
