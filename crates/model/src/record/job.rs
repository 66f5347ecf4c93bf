//! The states of a background job.

crate::words! {
    /// The state of a background job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum JobState {
        /// It runs.
        Running = "running",
        /// It ended with exit code 0.
        Done = "done",
        /// It ended otherwise by itself, or broke a bound.
        Failed = "failed",
        /// Its time was over.
        TimedOut = "timed_out",
        /// Its owner ended it.
        Cancelled = "cancelled",
        /// The process that ran it is gone, and the job with it.
        Orphaned = "orphaned",
    }
}
