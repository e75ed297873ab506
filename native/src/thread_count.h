// How many CPU threads to compute with on a machine that others use too. Standard library only.
#pragma once

namespace dflash {

// Follows what the system gives us. ggml's threads wait for each other by spinning:
// when other programs take a core away, every wait lasts a time slice, and fewer threads are many times faster.
class ThreadCount {
  public:
    explicit ThreadCount(int most) : most_(most), count_(most) {}
    int count() const { return count_; }
    // A computation took `wall_us`, in which the process was given `cpu_us`. True when the count has changed.
    bool observe(double wall_us, double cpu_us);

  private:
    int most_;
    int count_;
    double wall_us_ = 0;
    double cpu_us_ = 0;
    double since_change_us_ = 0;
    bool is_last_up_ = false;
    double retry_us_ = 1e6; // how long a lower count is kept before one thread more is tried
};

} // namespace dflash
