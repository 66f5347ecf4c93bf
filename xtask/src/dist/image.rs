//! The container image: the program and the libraries it links, nothing else, as a
//! user of its own. Made without a base image, so nothing is pulled.
//!
//! It is one archive that both `docker load` and tools of the OCI layout read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::stage::{Stage, tar};
use super::{Release, must, sha256};
use crate::run;

/// Who the program runs as.
const UID: u32 = 65_532;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Where its home is; a volume, so that nothing is lost with the container.
const HOME: &str = "/var/lib/ringfence";

/// The certificates the system trusts.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Makes the image.
pub(crate) fn make(release: &Release, stage: &Stage) -> Result<PathBuf> {
    let work = release.folder.join("image");
    let rootfs = work.join("rootfs");
    add_files(&rootfs, stage)?;
    let layer = work.join("layer.tar.gz");
    tar_layer(&rootfs, &layer, release.time)?;
    let layer_bytes = fs::read(&layer)?;
    let config = config(release, &layer)?.to_string().into_bytes();
    let layout = work.join("layout");
    write_layout(release, &layout, &config, &layer_bytes)?;
    let image = release
        .folder
        .join(format!("{}.image.tar.gz", release.name()));
    let names = ["blobs", "index.json", "manifest.json", "oci-layout"];
    tar(&layout, &names, &image, release.time)?;
    fs::remove_dir_all(&work)?;
    Ok(image)
}

/// How the image is run. `docker run` can override it, but need not.
fn config(release: &Release, layer: &Path) -> Result<Value> {
    let unpacked = Command::new("gzip").arg("-dc").arg(layer).output();
    let unpacked = unpacked.context("could not start `gzip`")?.stdout;
    let created = timestamp(release.time)?;
    Ok(json!({
        "architecture": oci_arch(release.arch),
        "os": "linux",
        "created": created,
        "config": {
            "User": format!("{UID}:{UID}"),
            "Entrypoint": ["/usr/bin/ringfence"],
            "Cmd": ["serve", "--listen", "0.0.0.0:7464"],
            "Env": [format!("RINGFENCE_HOME={HOME}"), "PATH=/usr/bin", format!("HOME={HOME}")],
            "WorkingDir": HOME,
            "Volumes": {HOME: {}},
            "ExposedPorts": {"7464/tcp": {}},
            "Labels": {
                "org.opencontainers.image.title": "ringfence",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&unpacked))]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    }))
}

/// The OCI layout, and beside it what `docker load` of older engines reads.
fn write_layout(release: &Release, layout: &Path, config: &[u8], layer: &[u8]) -> Result<()> {
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let blob = |bytes: &[u8]| -> Result<String> {
        let sum = sha256(bytes);
        fs::write(blobs.join(&sum), bytes)?;
        Ok(sum)
    };
    let (config_sum, layer_sum) = (blob(config)?, blob(layer)?);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": format!("sha256:{config_sum}"), "size": config.len(),
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
            "digest": format!("sha256:{layer_sum}"), "size": layer.len(),
        }],
    });
    let manifest = manifest.to_string().into_bytes();
    let manifest_sum = blob(&manifest)?;
    let write = |name: &str, value: Value| fs::write(layout.join(name), value.to_string());
    write("oci-layout", json!({"imageLayoutVersion": "1.0.0"}))?;
    write(
        "index.json",
        json!({
            "schemaVersion": 2,
            "manifests": [{
                "mediaType": MANIFEST,
                "digest": format!("sha256:{manifest_sum}"), "size": manifest.len(),
                "annotations": {"org.opencontainers.image.ref.name": release.version},
            }],
        }),
    )?;
    write(
        "manifest.json",
        json!([{
            "Config": format!("blobs/sha256/{config_sum}"),
            "RepoTags": [format!("ringfence:{}", release.version)],
            "Layers": [format!("blobs/sha256/{layer_sum}")],
        }]),
    )?;
    Ok(())
}

fn add_files(rootfs: &Path, stage: &Stage) -> Result<()> {
    let add = |from: &Path, to: &str| -> Result<()> {
        let to = rootfs.join(to.trim_start_matches('/'));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, &to).with_context(|| format!("could not copy {}", from.display()))?;
        Ok(())
    };
    add(&stage.program(), "/usr/bin/ringfence")?;
    for library in libraries(&stage.program())? {
        let name = library.to_str().context("a library's path is not text")?;
        add(&fs::canonicalize(&library)?, name)?;
    }
    if Path::new(CERTIFICATES).exists() {
        add(&fs::canonicalize(CERTIFICATES)?, CERTIFICATES)?;
    }
    for document in ["LICENSE", "LICENSES.txt", super::sbom::FILE] {
        let to = format!("/usr/share/doc/ringfence/{document}");
        add(&stage.folder().join(document), &to)?;
    }
    fs::create_dir_all(rootfs.join("etc"))?;
    let user = format!("ringfence:x:{UID}:{UID}::{HOME}:/nonexistent\n");
    fs::write(
        rootfs.join("etc/passwd"),
        format!("root:x:0:0::/:/nonexistent\n{user}"),
    )?;
    fs::write(
        rootfs.join("etc/group"),
        format!("root:x:0:\nringfence:x:{UID}:\n"),
    )?;
    fs::create_dir_all(rootfs.join(HOME.trim_start_matches('/')))?;
    fs::create_dir_all(rootfs.join("tmp"))?;
    Ok(())
}

/// The libraries a program links, and what loads them.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    let text = run::output(Command::new("ldd").arg(program)).context("`ldd` failed")?;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let path = match line.split_once("=>") {
            Some((_, path)) => path.split_whitespace().next(),
            None => line.split_whitespace().next(),
        };
        match path {
            Some(path) if path.starts_with('/') => {
                found.insert(PathBuf::from(path));
            }
            Some("not") => bail!("a library is missing: {line}"),
            // The kernel's own.
            Some(_) | None => {}
        }
    }
    ensure!(!found.is_empty(), "the program links no library at all");
    Ok(found)
}

/// The layer: everything is root's, but the home.
fn tar_layer(rootfs: &Path, to: &Path, time: u64) -> Result<()> {
    let plain = to.with_extension("");
    let common = |command: &mut Command| {
        command
            .args(["--sort=name", "--numeric-owner", "--format=gnu"])
            .arg(format!("--mtime=@{time}"))
            .arg("-C")
            .arg(rootfs);
    };
    let mut first = Command::new("tar");
    first.args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"]);
    first
        .arg("--exclude=./var/lib/ringfence")
        .arg("--exclude=./tmp");
    common(&mut first);
    must(first.arg("-cf").arg(&plain).arg("."))?;
    let mut home = Command::new("tar");
    home.arg(format!("--owner={UID}"))
        .arg(format!("--group={UID}"));
    home.arg("--mode=0700");
    common(&mut home);
    must(home.arg("-rf").arg(&plain).arg("./var/lib/ringfence"))?;
    let mut temporary = Command::new("tar");
    temporary.args(["--owner=0", "--group=0", "--mode=1777"]);
    common(&mut temporary);
    must(temporary.arg("-rf").arg(&plain).arg("./tmp"))?;
    must(Command::new("gzip").arg("-n9").arg(&plain))
}

/// The processor as images name it.
fn oci_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Seconds since 1970 as RFC 3339, in UTC.
fn timestamp(seconds: u64) -> Result<String> {
    let mut date = Command::new("date");
    date.args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"]);
    let text = run::output(&mut date).context("`date` failed")?;
    Ok(text.trim().to_owned())
}
