//! The spine from outside. No packet leaves the machine: every connection goes to
//! a lab on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop"
)]

mod answers;
mod approvals;
mod approvals_crash;
mod approvals_scope;
mod approvals_store;
mod call;
mod catalog;
mod catalog_call;
mod catalog_golden;
mod catalog_hostile;
mod catalog_lab;
mod catalog_page;
mod catalog_schema;
mod codecall;
mod codecall_mode;
mod consent;
mod crash;
mod embed;
mod gates;
mod govern;
mod hosts;
mod http;
mod levels;
mod life;
mod limits;
mod many;
mod names;
mod notices;
mod offers;
mod pauses;
mod policy;
#[path = "../../../host/tests/lab/postgres.rs"]
#[expect(dead_code, reason = "tests of the host need more of the lab")]
mod postgres_lab;
mod progressive;
mod room;
mod script;
mod script_cases;
mod script_crash;
mod script_gates;
mod script_journal;
mod script_store;
mod script_time;
mod script_words;
mod server_hosts;
mod server_items;
mod servers;
mod sql;
mod toolbox;
mod toolbox_copies;
mod toolbox_egress;
mod toolbox_folder;
mod toolbox_forge;
mod toolbox_hostile;
mod toolbox_matrix;
mod toolbox_planted;
mod toolbox_remote;
mod toolbox_rungs;
mod trust;
mod world;
