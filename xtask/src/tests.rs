//! The command line itself.

use clap::CommandFactory;

use crate::Arguments;

#[test]
fn the_command_line_is_well_formed() {
    Arguments::command().debug_assert();
}
