//! Threads for questions that may never be answered. One that was answered waits a while for the next question: a
//! thread costs as much as what it asks for.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread without a question is kept; disks come in bursts.
const KEPT: Duration = Duration::from_secs(10);

/// What a thread asks. It tells the answer itself.
type Question = Box<dyn FnOnce() + Send>;

/// The threads. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Askers(Arc<Mutex<Idle>>);

/// The thread that waits for a question, if one does; more than one are not kept.
#[derive(Debug, Default)]
struct Idle {
    thread: Option<(u64, Sender<Question>)>,
    /// How many threads there have been.
    count: u64,
}

impl Askers {
    /// Asks on a thread where nothing else waits.
    ///
    /// # Errors
    /// When a thread is needed and cannot be made.
    pub(super) fn ask(&self, question: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut question: Question = Box::new(question);
        let mut idle = self.idle();
        if let Some((_, thread)) = idle.thread.take() {
            match thread.send(question) {
                Ok(()) => return Ok(()),
                // It ended by a panic.
                Err(unsent) => question = unsent.0,
            }
        }
        idle.count += 1;
        let number = idle.count;
        let askers = self.clone();
        thread::Builder::new()
            .name("asker".to_owned())
            .spawn(move || askers.serve(number, question))
            .map(drop)
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, number: u64, first: Question) {
        first();
        while let Some(question) = self.offer(number).and_then(|next| self.next(number, &next)) {
            question();
        }
    }

    /// Offers this thread for the next question; none while another one waits for it.
    fn offer(&self, number: u64) -> Option<Receiver<Question>> {
        let mut idle = self.idle();
        if idle.thread.is_some() {
            return None;
        }
        let (sender, receiver) = channel();
        idle.thread = Some((number, sender));
        Some(receiver)
    }

    fn next(&self, number: u64, questions: &Receiver<Question>) -> Option<Question> {
        match questions.recv_timeout(KEPT) {
            Ok(question) => return Some(question),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.idle().thread.take_if(|(of, _)| *of == number);
        // One may have come in between.
        questions.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::ThreadId;

    use super::*;

    /// Asks, and waits until the thread that asked waits for another question.
    fn ask(askers: &Askers) -> ThreadId {
        let (sender, told) = mpsc::channel();
        let question = move || sender.send(thread::current().id()).unwrap();
        askers.ask(question).unwrap();
        let id = told.recv().unwrap();
        while askers.idle().thread.is_none() {
            thread::yield_now();
        }
        id
    }

    #[test]
    fn a_thread_that_was_answered_asks_again() {
        let askers = Askers::default();
        let first = ask(&askers);
        assert_eq!(ask(&askers), first);
        assert_eq!(askers.idle().count, 1);
    }

    #[test]
    fn a_question_without_answer_keeps_no_other_one_waiting() {
        let askers = Askers::default();
        let (release, hold) = mpsc::channel::<()>();
        // Ends when the sender is dropped.
        let unanswered = move || {
            let _ = hold.recv();
        };
        askers.ask(unanswered).unwrap();
        let other = ask(&askers);
        assert_eq!(ask(&askers), other);
        assert_eq!(askers.idle().count, 2);
        drop(release);
    }

    #[test]
    fn a_thread_that_panicked_is_replaced() {
        let askers = Askers::default();
        let first = ask(&askers);
        let panics = || std::panic::resume_unwind(Box::new("the test says so"));
        askers.ask(panics).unwrap();
        assert_ne!(ask(&askers), first);
    }
}
