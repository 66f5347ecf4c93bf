//! Every bound of the jail, named, in one place.

model::limits! {
    /// Arguments of a command, the program included.
    ARGUMENTS_MAX: usize = 1_024;
    /// Bytes of a command, its arguments included.
    COMMAND_BYTES_MAX: usize = 128 << 10;
    /// Declared environment variables of a child.
    VARIABLES_MAX: usize = 256;
    /// Bytes of a child's environment.
    ENVIRONMENT_BYTES_MAX: usize = 128 << 10;
    /// Declared folders and files of a child.
    PATHS_MAX: usize = 256;
    /// Files and folders a child is given in all, with those of the system.
    FILE_RULES_MAX: usize = 16_384;
    /// Entries of system folders that are looked at while secrets are left out.
    SYSTEM_ENTRIES_MAX: usize = 65_536;
    /// Nesting of system folders that are looked at while secrets are left out.
    SYSTEM_DEPTH_MAX: usize = 16;
    /// Interpreters named by one another at the head of scripts.
    INTERPRETERS_MAX: usize = 4;
    /// Symbolic links that lead from a program's name to its file.
    PROGRAM_LINKS_MAX: usize = 16;
    /// Bytes of the order a supervisor gets.
    ORDER_BYTES_MAX: usize = 4 << 20;
    /// Bytes of one report of a supervisor.
    REPORT_BYTES_MAX: usize = 64 << 10;
    /// Characters of one reason in a report.
    REASON_CHARS_MAX: usize = 500;
    /// Milliseconds until a child must have started.
    START_MS_MAX: u64 = 10_000;
    /// Milliseconds to wait for the end of a child's processes after they were killed.
    KILL_MS_MAX: u64 = 5_000;
    /// Milliseconds between two looks at what a child uses, where it may soon be too much.
    LOOK_INTERVAL_MS_MIN: u64 = 250;
    /// Milliseconds between two looks at what a child uses, where nothing changes.
    LOOK_INTERVAL_MS_MAX: u64 = 1_000;
    /// Bytes a disk is expected to take in a second. What a child may still write tells by it when to
    /// look again.
    DISK_RATE_BYTES_MAX: u64 = 4 << 30;
    /// Milliseconds a child has to end after its standard input was closed.
    CLOSE_MS: u64 = 2_000;
    /// Milliseconds a child has to end after SIGTERM.
    TERM_MS: u64 = 3_000;
    /// Bytes of private memory of one process of a child, unless declared otherwise.
    MEMORY_BYTES_DEFAULT: u64 = 4 << 30;
    /// Processes and threads of a child, unless declared otherwise.
    PROCESSES_DEFAULT: u64 = 512;
    /// Open files of one process of a child, unless declared otherwise.
    OPEN_FILES_DEFAULT: u64 = 4_096;
    /// Bytes of one file a child writes, unless declared otherwise.
    FILE_BYTES_DEFAULT: u64 = 1 << 30;
    /// Bytes below a child's `/tmp`, unless declared otherwise.
    TEMPORARY_BYTES_DEFAULT: u64 = 256 << 20;
    /// Bytes a child's own folders may grow by, unless declared otherwise.
    DISK_BYTES_DEFAULT: u64 = 4 << 30;
    /// A count of what a child has written holds until it may have written one part of so many of
    /// its bound, or what it had left, if that is more.
    DISK_PARTS: u64 = 16;
    /// Files and folders that are counted when a child may have written too much; with more
    /// it has.
    DISK_ENTRIES_MAX: usize = 1_000_000;
    /// Bytes of a file of the system's settings that is copied into the new root.
    SETTING_BYTES_MAX: u64 = 128 << 10;
    /// Bytes of a file that a child with an open network looks names up in; of a longer one its
    /// first lines count.
    NAME_FILE_BYTES_MAX: u64 = 1 << 20;
    /// Bytes of the new root: names, folders and small settings.
    ROOT_BYTES_MAX: u64 = 8 << 20;
    /// The first user number that children of root run as. No distribution gives these out.
    USER_FIRST: u32 = 60_578;
    /// How many children of root can run at a time, each as a user of its own.
    USERS_MAX: u32 = 606;
    /// Files and folders of a workspace that are handed to a child's user at its start.
    HANDED_ENTRIES_MAX: usize = 200_000;
    /// Folders whose changes are kept beside them.
    OVERLAYS_MAX: usize = 16;
    /// Connections of a child that wait for the parent.
    EGRESS_WAITING_MAX: i32 = 64;
    /// Processes and threads around a child that are counted with it: the first process of its
    /// namespaces, which has two threads.
    PROCESSES_OURS: u64 = 2;
    /// Processes above a child's bound that the kernel allows without a control group before it
    /// refuses, so that the supervisor sees that the bound was broken.
    PROCESSES_SEEN: u64 = 32;
    /// Processes that other programs of the same user may start beside a child before
    /// the kernel refuses the child new ones.
    PROCESSES_SLACK: u64 = 1_024;
}
