//! Threads for blocking calls that may never return. An idle thread is kept for a while, because starting a thread costs
//! as much as a typical call.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long an idle thread is kept; disks are attached in bursts.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A blocking call, which reports its result itself.
type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads for blocking calls. Clones share the threads.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockingPool(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The idle thread; at most one is kept.
    idle: Option<(u64, Sender<Job>)>,
    /// The number of threads started so far.
    started: u64,
}

impl BlockingPool {
    /// Runs the call on an idle or new thread; it never waits for another call.
    ///
    /// # Errors
    /// If a thread is required and cannot be started.
    pub(super) fn spawn(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut job: Job = Box::new(job);
        let mut state = self.lock();
        if let Some((_, thread)) = state.idle.take() {
            match thread.send(job) {
                Ok(()) => return Ok(()),
                // The thread has panicked.
                Err(unsent) => job = unsent.0,
            }
        }
        state.started += 1;
        let id = state.started;
        let pool = self.clone();
        thread::Builder::new()
            .name("blocking".to_owned())
            .spawn(move || pool.run(id, job))
            .map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, id: u64, first: Job) {
        first();
        while let Some(job) = self.become_idle(id).and_then(|jobs| self.next(id, &jobs)) {
            job();
        }
    }

    /// Registers this thread as idle; `None` if another thread is.
    fn become_idle(&self, id: u64) -> Option<Receiver<Job>> {
        let mut state = self.lock();
        if state.idle.is_some() {
            return None;
        }
        let (sender, receiver) = channel();
        state.idle = Some((id, sender));
        Some(receiver)
    }

    fn next(&self, id: u64, jobs: &Receiver<Job>) -> Option<Job> {
        match jobs.recv_timeout(KEEP_ALIVE) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.lock().idle.take_if(|(idle, _)| *idle == id);
        // A job may have been sent before this thread was removed.
        jobs.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::ThreadId;

    use super::*;

    /// Runs a job, and waits until its thread is idle.
    fn run_job(pool: &BlockingPool) -> ThreadId {
        let (sender, receiver) = mpsc::channel();
        let job = move || sender.send(thread::current().id()).unwrap();
        pool.spawn(job).unwrap();
        let id = receiver.recv().unwrap();
        while pool.lock().idle.is_none() {
            thread::yield_now();
        }
        id
    }

    #[test]
    fn an_idle_thread_is_reused() {
        let pool = BlockingPool::default();
        let first = run_job(&pool);
        assert_eq!(run_job(&pool), first);
        assert_eq!(pool.lock().started, 1);
    }

    #[test]
    fn a_call_that_does_not_return_delays_no_other_call() {
        let pool = BlockingPool::default();
        let (release, hold) = mpsc::channel::<()>();
        // Returns when the sender is dropped.
        let stuck = move || {
            let _ = hold.recv();
        };
        pool.spawn(stuck).unwrap();
        let other = run_job(&pool);
        assert_eq!(run_job(&pool), other);
        assert_eq!(pool.lock().started, 2);
        drop(release);
    }

    #[test]
    fn a_thread_that_panicked_is_replaced() {
        let pool = BlockingPool::default();
        let first = run_job(&pool);
        let panics = || std::panic::resume_unwind(Box::new("injected panic"));
        pool.spawn(panics).unwrap();
        assert_ne!(run_job(&pool), first);
    }
}
