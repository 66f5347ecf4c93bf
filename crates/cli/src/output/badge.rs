//! Badges and states in their colours, the same wherever they are shown.

use model::document::lifecycle::State;
use model::policy::risk::Level;

use crate::output::printer::{Printer, Style};

/// A badge with its word.
pub(crate) fn level(printer: &Printer, level: Level) -> String {
    let style = match level {
        Level::L0 | Level::L1 | Level::L2 => Style::Good,
        Level::L3 => Style::Caution,
        Level::L4 | Level::L5 => Style::Bad,
    };
    printer.styled(style, &format!("{} {}", level.badge(), level.label()))
}

/// A state.
pub(crate) fn state(printer: &Printer, state: State) -> String {
    let style = match state {
        State::Active => Style::Good,
        State::Draft => Style::Dim,
        State::MissingRequirements | State::TestFailed => Style::Caution,
    };
    printer.styled(style, state.word())
}
