//! Control groups in a folder that looks like the kernel's: what is asked of which file, and
//! what is said where the system does not let us.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A tree of version two as a service manager delegates it: `DelegateSubgroup=server`.
const OWN: &str = "0::/system.slice/ringfence.service/server\n";
const SERVICE: &str = "system.slice/ringfence.service";

struct Tree(PathBuf);

impl Tree {
    fn new() -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringfence-groups-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(&root).unwrap();
        Tree(root)
    }

    /// With both controllers, of which the service has `divided`.
    fn version_two(divided: &str) -> Tree {
        let tree = Tree::new();
        tree.write("cgroup.controllers", "cpuset cpu io memory pids\n");
        fs::create_dir_all(tree.0.join(SERVICE).join("server")).unwrap();
        tree.write(&format!("{SERVICE}/cgroup.subtree_control"), divided);
        tree
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    fn make(&self, own: &str) -> Result<ControlGroup, String> {
        ControlGroup::make_in(&self.0, own, &limits())
    }

    fn name(&self, file: &str) -> String {
        format!("{SERVICE}/ringfence-{}/{file}", std::process::id())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn limits() -> JailLimits {
    JailLimits {
        memory_bytes: 64 << 20,
        processes: 10,
        ..JailLimits::standard()
    }
}

#[test]
fn a_delegated_tree_bounds_memory_swap_and_processes() {
    let tree = Tree::version_two("memory pids\n");
    let group = tree.make(OWN).unwrap();
    assert_eq!(tree.read(&tree.name("memory.max")), "67108864");
    assert_eq!(tree.read(&tree.name("memory.swap.max")), "0");
    let processes = 10 + limit::PROCESSES_OURS;
    assert_eq!(tree.read(&tree.name("pids.max")), processes.to_string());
    tree.write(&tree.name("cgroup.procs"), "");
    let open = group.open().unwrap();
    open.join().unwrap();
    // A process can also begin in it.
    assert!(open.folder().is_some());
    // Nought is the process that writes.
    assert_eq!(tree.read(&tree.name("cgroup.procs")), "0");
    // What is divided already is not asked for again.
    let divided = tree.read(&format!("{SERVICE}/cgroup.subtree_control"));
    assert_eq!(divided, "memory pids\n");
}

#[test]
fn controllers_that_are_not_divided_yet_are_asked_for() {
    for held in ["", "cpu\n", "memory\n"] {
        let tree = Tree::version_two(held);
        tree.make(OWN).unwrap();
        let divided = tree.read(&format!("{SERVICE}/cgroup.subtree_control"));
        assert_eq!(divided, "+memory +pids", "{held}");
    }
}

#[test]
fn a_process_killed_for_want_of_memory_is_known() {
    let tree = Tree::version_two("memory pids\n");
    let group = tree.make(OWN).unwrap();
    for (events, is_out) in [
        ("", false),
        ("low 0\nhigh 0\nmax 3\noom 1\noom_kill 0\n", false),
        ("low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n", true),
    ] {
        tree.write(&tree.name("memory.events"), events);
        assert_eq!(group.ran_out_of_memory(), is_out, "{events}");
    }
}

#[test]
fn a_group_that_was_full_is_known() {
    let tree = Tree::version_two("memory pids\n");
    let group = tree.make(OWN).unwrap();
    let max = 10 + limit::PROCESSES_OURS;
    let below = (max - 1).to_string();
    let max = max.to_string();
    for (events, peak, current, is_full) in [
        ("max 0\n", Some(&max), &max, false),
        ("max 3\n", Some(&max), &below, true),
        // A group above was full, and this one was not.
        ("max 3\n", Some(&below), &max, false),
        ("max 3\n", None, &max, true),
        ("max 3\n", None, &below, false),
    ] {
        tree.write(&tree.name("pids.events"), events);
        tree.write(&tree.name("pids.current"), current);
        let file = tree.0.join(tree.name("pids.peak"));
        let _ = fs::remove_file(&file);
        if let Some(peak) = peak {
            fs::write(&file, peak).unwrap();
        }
        let full = group.watch_processes().unwrap();
        assert_eq!(full.has_refused().unwrap(), is_full, "{events} {peak:?}");
    }
    // Of an older kernel: it is counted then.
    fs::remove_file(tree.0.join(tree.name("pids.events"))).unwrap();
    assert!(group.watch_processes().is_err());
}

#[test]
fn what_is_missing_is_said() {
    let tree = Tree::version_two("memory pids\n");
    // Without controllers, in the root, and where there are none at all.
    for (own, controllers, expected) in [
        (
            OWN,
            "hugetlb\n",
            "control groups of version 2 have no memory and pids controllers here",
        ),
        (
            OWN,
            "memory\n",
            "control groups of version 2 have no memory and pids controllers here",
        ),
        (
            "0::/\n",
            "memory pids\n",
            "this process is in the root of the control groups",
        ),
        (
            "0::/server\n",
            "memory pids\n",
            "this process is in the root of the control groups",
        ),
        ("", "", "there are no control groups of version 2"),
    ] {
        tree.write("cgroup.controllers", controllers);
        assert_eq!(tree.make(own).unwrap_err(), expected, "{own}");
    }
}

#[test]
fn a_tree_that_is_not_delegated_is_said() {
    if rustix::process::getuid().is_root() {
        // Root may write everywhere in a folder of ours; a file in the way stops it, too.
        let tree = Tree::version_two("memory pids\n");
        tree.write(
            &format!("{SERVICE}/ringfence-{}", std::process::id()),
            "in the way",
        );
        let why = tree.make(OWN).unwrap_err();
        assert!(
            why.starts_with("the system delegates no control group"),
            "{why}"
        );
        return;
    }
    let tree = Tree::version_two("memory pids\n");
    let closed = fs::Permissions::from_mode(0o500);
    fs::set_permissions(tree.0.join(SERVICE), closed).unwrap();
    let why = tree.make(OWN).unwrap_err();
    fs::set_permissions(tree.0.join(SERVICE), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(
        why.starts_with("the system delegates no control group"),
        "{why}"
    );
}

#[test]
fn an_own_group_that_leads_elsewhere_is_not_followed() {
    let tree = Tree::version_two("memory pids\n");
    // What the kernel shows of a group outside the own namespace.
    for own in ["0::/../other/server\n", "0::/../../etc\n"] {
        let why = "this process is in a control group that it does not see";
        assert_eq!(tree.make(own).unwrap_err(), why, "{own}");
    }
}

#[test]
fn version_one_has_a_group_for_each_controller() {
    let tree = Tree::new();
    for controller in ["memory", "pids"] {
        fs::create_dir_all(tree.0.join(controller).join("docker/a")).unwrap();
    }
    let own = "5:pids:/docker/a\n4:cpu,memory:/docker/a\n0::/docker/a\n";
    let group = tree.make(own).unwrap();
    let name = format!("docker/a/ringfence-{}", std::process::id());
    let memory = format!("memory/{name}/memory.limit_in_bytes");
    assert_eq!(tree.read(&memory), "67108864");
    let processes = (10 + limit::PROCESSES_OURS).to_string();
    assert_eq!(tree.read(&format!("pids/{name}/pids.max")), processes);
    tree.write(
        &format!("memory/{name}/memory.oom_control"),
        "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    );
    assert!(group.ran_out_of_memory());
}

#[test]
fn a_group_of_a_killed_supervisor_is_replaced() {
    let tree = Tree::version_two("memory pids\n");
    let folder = tree.0.join(SERVICE);
    let folder = folder.join(format!("ringfence-{}", std::process::id()));
    // The kernel's files in a group do not keep it from being removed; here there are none.
    fs::create_dir(&folder).unwrap();
    tree.make(OWN).unwrap();
    assert_eq!(tree.read(&tree.name("memory.max")), "67108864");
}
