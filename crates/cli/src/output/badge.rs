//! Badges and states in their colours, the same wherever they are shown.

use model::document::lifecycle::LifecycleState;
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

pub(crate) fn state(printer: &Printer, state: LifecycleState) -> String {
    let style = match state {
        LifecycleState::Active => Style::Good,
        LifecycleState::Draft => Style::Dim,
        LifecycleState::MissingRequirements | LifecycleState::TestFailed => Style::Caution,
    };
    printer.styled(style, state.word())
}
