//! The software bill of materials: a CycloneDX document.

use serde_json::{Value, json};

use super::Release;
use super::dependencies::Package;

/// The file, beside the archive and in it.
pub(crate) const FILE: &str = "ringfence.cdx.json";

pub(crate) fn document(release: &Release, shipped: &[&Package]) -> Value {
    let purl = |package: &Package| format!("pkg:cargo/{}@{}", package.name, package.version);
    let component = |package: &Package| {
        let purl = purl(package);
        let mut component = json!({
            "type": "library",
            "bom-ref": purl,
            "name": package.name,
            "version": package.version,
            "purl": purl,
        });
        if let Some(members) = component.as_object_mut() {
            if let Some(licence) = &package.licence {
                let expression = licence.replace('/', " OR ");
                members.insert("licenses".to_owned(), json!([{ "expression": expression }]));
            }
            if let Some(sum) = &package.checksum {
                let hashes = json!([{"alg": "SHA-256", "content": sum}]);
                members.insert("hashes".to_owned(), hashes);
            }
        }
        component
    };
    let components: Vec<_> = shipped.iter().map(|package| component(package)).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "ringfence",
                "name": "ringfence",
                "version": release.version,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
    })
}
