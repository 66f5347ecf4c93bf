//! A parallel map for many short pieces of work.

/// Threads at the same time.
const THREADS_MAX: usize = 8;
/// Items that are worth a thread.
const PIECES_MIN: usize = 32;

/// Applies `work` to each item, on all processors, and returns the results in the
/// order of the items. Returns nothing if a thread panicked.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Option<Vec<R>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(processors.min(THREADS_MAX));
    if share < PIECES_MIN {
        return Some(items.iter().map(work).collect());
    }
    let work = &work;
    std::thread::scope(|scope| {
        let mut shares = items.chunks(share);
        let own = shares.next().unwrap_or_default();
        let start = |items: &[T]| items.iter().map(work).collect::<Vec<R>>();
        let others: Vec<_> = shares
            .map(|items| scope.spawn(move || start(items)))
            .collect();
        let mut results = Vec::with_capacity(items.len());
        results.extend(own.iter().map(work));
        for other in others {
            results.extend(other.join().ok()?);
        }
        Some(results)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0_usize, 1, 31, 64, 65, 1_000, 1_001] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = map(&items, |item| item * 2).expect("done");
            let expected: Vec<_> = items.iter().map(|item| item * 2).collect();
            assert_eq!(doubled, expected);
        }
    }
}
