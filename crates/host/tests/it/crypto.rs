//! `crypto`: published vectors, the shapes scripts rely on, and every fault.

use serde_json::{Value, json};

use crate::face::{call, reason, run};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An operation over several buffers.
fn parts(
    operation: &str,
    mut arguments: Value,
    parts: &[&[u8]],
) -> Result<(Value, Vec<u8>), host::message::PowerFault> {
    arguments["parts"] = json!(parts.iter().map(|part| part.len()).collect::<Vec<_>>());
    call(operation, arguments, &parts.concat())
}

#[track_caller]
fn digest(algorithm: Value, data: &[u8], expected: &str) {
    let (_, own) = call("crypto.digest", json!({ "algorithm": algorithm }), data).unwrap();
    assert_eq!(hex(&own), expected, "{algorithm}");
}

// FIPS 180-4, the examples for `abc` and for nothing.
#[test]
fn digests() {
    digest(
        json!("SHA-256"),
        b"abc",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    );
    digest(
        json!({ "name": "sha-256" }),
        b"",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
    digest(
        json!("SHA-384"),
        b"abc",
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    );
    digest(
        json!("SHA-512"),
        b"abc",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    );
    digest(
        json!({ "name": "SHA-1", "legacy": true }),
        b"abc",
        "a9993e364706816aba3e25717850c26c9cd0d89d",
    );
    for wrong in [
        json!("SHA-1"),
        json!({ "name": "SHA-1" }),
        json!("MD5"),
        json!("SHA-3"),
    ] {
        assert_eq!(
            reason(call("crypto.digest", json!({ "algorithm": wrong }), b"")),
            "INVALID_INPUT unsupported-algorithm",
            "{wrong}"
        );
    }
    assert_eq!(
        reason(call("crypto.digest", json!({}), b"")),
        "INVALID_INPUT invalid-algorithm"
    );
}

// RFC 4231, cases 1, 2, 3 and 6.
#[test]
fn hmac_vectors() {
    let cases: [(&str, Vec<u8>, Vec<u8>, &str); 5] = [
        (
            "SHA-256",
            vec![0x0b; 20],
            b"Hi There".to_vec(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            "SHA-256",
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "SHA-256",
            vec![0xaa; 20],
            vec![0xdd; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
        (
            "SHA-384",
            b"Jefe".to_vec(),
            b"what do ya want for nothing?".to_vec(),
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            "SHA-512",
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598",
        ),
    ];
    for (hash, key, data, expected) in cases {
        let (_, own) = parts("crypto.hmac", json!({ "hash": hash }), &[&key, &data]).unwrap();
        assert_eq!(hex(&own), expected);
        let verified = |signature: &[u8]| {
            parts(
                "crypto.hmacVerify",
                json!({ "hash": hash }),
                &[&key, signature, &data],
            )
            .unwrap()
            .0
        };
        assert_eq!(verified(&own), json!(true));
        let mut changed = own.clone();
        changed[0] ^= 1;
        assert_eq!(verified(&changed), json!(false));
        assert_eq!(verified(&own[1..]), json!(false));
        assert_eq!(verified(b""), json!(false));
    }
}

#[test]
fn hmac_faults() {
    assert_eq!(
        reason(parts("crypto.hmac", json!({ "hash": "MD5" }), &[b"k", b""])),
        "INVALID_INPUT unsupported-hash"
    );
    assert_eq!(
        reason(parts("crypto.hmac", json!({}), &[b"", b""])),
        "INVALID_INPUT invalid-key"
    );
    assert_eq!(
        reason(parts("crypto.hmacVerify", json!({}), &[b"", b"", b""])),
        "INVALID_INPUT invalid-key"
    );
    assert_eq!(
        reason(call("crypto.hmac", json!({ "parts": [5, 5] }), b"abc")),
        "INVALID_INPUT missing-args"
    );
    assert_eq!(
        reason(call("crypto.hmac", json!({ "parts": [1, 1] }), b"abc")),
        "INVALID_INPUT missing-args"
    );
    assert_eq!(
        reason(call("crypto.hmac", json!({}), b"abc")),
        "INVALID_INPUT missing-args"
    );
}

// The GCM specification of McGrew and Viega, test cases 2, 4, 16, 5 and 6.
#[test]
fn aes_gcm_vectors() {
    let text = bytes(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    let aad = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let iv = bytes("cafebabefacedbaddecaf888");
    let key = bytes("feffe9928665731c6d6a8f9467308308");
    let cases = [
        (bytes("00000000000000000000000000000000"), vec![0; 12], vec![], vec![0; 16], "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf".to_owned()),
        (key.clone(), iv.clone(), aad.clone(), text.clone(),
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e0915bc94fbc3221a5db94fae95ae7121a47".to_owned()),
        (bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"), iv, aad.clone(), text.clone(),
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b".to_owned()),
        (key.clone(), bytes("cafebabefacedbad"), aad.clone(), text.clone(),
            "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c742373806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f45983612d2e79e3b0785561be14aaca2fccb".to_owned()),
        (key, bytes("9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b"), aad.clone(), text.clone(),
            "8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca701e4a9a4fba43c90ccdcb281d48c7c6fd62875d2aca417034c34aee5619cc5aefffe0bfa462af43c1699d050".to_owned()),
        // Not in the specification; recorded from OpenSSL.
        (bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c"), vec![0], aad, text,
            "00a53619d36e3efe6e693a37de860f89a194fe82e5c3142b105dad252bdc4e1f61a5590b3cc6168e1bb9ef64beb4d8977a5ccb115939393505e92355788730c397fee17eda1e9f0798ef9dca".to_owned()),
    ];
    for (key, iv, aad, data, expected) in cases {
        let (_, sealed) = parts("crypto.encrypt", json!({}), &[&key, &iv, &aad, &data]).unwrap();
        assert_eq!(hex(&sealed), expected);
        let (_, opened) = parts("crypto.decrypt", json!({}), &[&key, &iv, &aad, &sealed]).unwrap();
        assert_eq!(opened, data);
        // As Wycheproof has it: each bit counts, of tag, text and what goes with it.
        for at in [0, sealed.len() / 2, sealed.len() - 1] {
            let mut changed = sealed.clone();
            changed[at] ^= 0x80;
            assert_eq!(
                reason(parts(
                    "crypto.decrypt",
                    json!({}),
                    &[&key, &iv, &aad, &changed]
                )),
                "HELPER_RUNTIME decrypt-failed"
            );
        }
        assert_eq!(
            reason(parts(
                "crypto.decrypt",
                json!({}),
                &[&key, &iv, b"other", &sealed]
            )),
            "HELPER_RUNTIME decrypt-failed"
        );
        assert_eq!(
            reason(parts(
                "crypto.decrypt",
                json!({}),
                &[&key, &iv, &aad, &sealed[..8]]
            )),
            "HELPER_RUNTIME decrypt-failed"
        );
    }
    assert_eq!(
        reason(parts(
            "crypto.encrypt",
            json!({}),
            &[&[0; 15], &[0; 12], b"", b""]
        )),
        "INVALID_INPUT invalid-key"
    );
    assert_eq!(
        reason(parts(
            "crypto.encrypt",
            json!({}),
            &[&[0; 16], b"", b"", b""]
        )),
        "INVALID_INPUT invalid-iv"
    );
}

// RFC 6070, and RFC 7914's companions for SHA-256.
#[test]
fn derived_keys() {
    let pbkdf2 = |hash: Value, password: &[u8], salt: &[u8], rounds: u64, length: usize| {
        parts(
            "crypto.pbkdf2",
            json!({ "hash": hash, "iterations": rounds, "length": length }),
            &[password, salt],
        )
    };
    let sha1 = json!({ "name": "SHA-1", "legacy": true });
    assert_eq!(
        hex(&pbkdf2(sha1, b"password", b"salt", 2, 20).unwrap().1),
        "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"
    );
    assert_eq!(
        hex(&pbkdf2(json!("SHA-256"), b"password", b"salt", 1, 32)
            .unwrap()
            .1),
        "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b"
    );
    assert_eq!(
        hex(&pbkdf2(json!("SHA-256"), b"password", b"salt", 4096, 32)
            .unwrap()
            .1),
        "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a"
    );
    assert_eq!(
        reason(pbkdf2(json!("SHA-256"), b"p", b"s", 0, 32)),
        "INVALID_INPUT invalid-iterations"
    );
    assert_eq!(
        reason(pbkdf2(json!("SHA-256"), b"p", b"s", 2_000_001, 32)),
        "INVALID_INPUT too-many-iterations"
    );
    assert_eq!(
        reason(pbkdf2(json!("SHA-256"), b"p", b"s", 1_000_001, 64)),
        "INVALID_INPUT too-many-iterations"
    );
    assert_eq!(
        reason(pbkdf2(json!("SHA-256"), b"p", b"s", u64::MAX, 4096)),
        "INVALID_INPUT too-many-iterations"
    );
    assert_eq!(
        reason(pbkdf2(json!("SHA-256"), b"p", b"s", 1, 0)),
        "INVALID_INPUT invalid-length"
    );
    assert_eq!(
        reason(pbkdf2(json!("SHA-256"), b"p", b"s", 1, 1_000_000)),
        "INVALID_INPUT invalid-length"
    );
}

// RFC 5869, cases 1 and 3.
#[test]
fn expanded_keys() {
    let hkdf = |key: &[u8], salt: &[u8], info: &[u8], length: usize| {
        parts(
            "crypto.hkdf",
            json!({ "hash": "SHA-256", "length": length }),
            &[key, salt, info],
        )
    };
    let (_, own) = hkdf(
        &[0x0b; 22],
        &bytes("000102030405060708090a0b0c"),
        &bytes("f0f1f2f3f4f5f6f7f8f9"),
        42,
    )
    .unwrap();
    assert_eq!(
        hex(&own),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    );
    let (_, own) = hkdf(&[0x0b; 22], b"", b"", 42).unwrap();
    assert_eq!(
        hex(&own),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    );
    assert_eq!(
        reason(hkdf(b"k", b"", b"", 4097)),
        "INVALID_INPUT invalid-length"
    );
    assert!(hkdf(b"k", b"", b"", 4096).is_ok());
}

#[test]
fn random_values_are_what_is_handed_in() {
    assert_eq!(
        call("crypto.randomUUID", json!({}), &[]).unwrap().0,
        json!("01020304-0506-4708-890a-0b0c0d0e0f10")
    );
    assert_eq!(
        call("crypto.randomBytes", json!({ "count": 4 }), &[])
            .unwrap()
            .1,
        [1, 2, 3, 4]
    );
    assert_eq!(
        reason(call("crypto.randomBytes", json!({ "count": 65_537 }), &[])),
        "INVALID_INPUT array-too-large"
    );
    assert_eq!(
        reason(call("crypto.randomBytes", json!({}), &[])),
        "INVALID_INPUT missing-args"
    );
}

#[track_caller]
fn check(script: &str, expected: Value) {
    assert_eq!(run(script), expected, "{script}");
}

#[test]
fn results_are_arrays_and_can_be_awaited() {
    let to_hex = "const hex = (x) => Array.from(new Uint8Array(x), (b) => b.toString(16).padStart(2, '0')).join('').slice(0, 8);";
    check(
        &format!("{to_hex} return hex(crypto.subtle.digest('SHA-256', 'abc'))"),
        json!("ba7816bf"),
    );
    check(
        &format!(
            "{to_hex} return hex(await crypto.subtle.digest({{ name: 'SHA-256' }}, new Uint8Array([97, 98, 99])))"
        ),
        json!("ba7816bf"),
    );
    check(
        &format!("{to_hex} return crypto.subtle.digest('SHA-256', [97, 98, 99]).then(hex)"),
        json!("ba7816bf"),
    );
    check(
        "const d = crypto.subtle.digest('SHA-256', new Uint16Array([25185, 99]).buffer.slice(0, 3)); return [Array.isArray(d), d.length, d.byteLength, d.buffer.byteLength, d[0], d.map((b) => b.toString(16))[1], Object.keys(d).length]",
        json!([true, 32, 32, 32, 186, "78", 32]),
    );
    check(
        "return (await crypto.subtle.digest('SHA-512', '')).then === undefined",
        json!(true),
    );
    check(
        "return Promise.all([crypto.subtle.digest('SHA-256', 'a'), crypto.subtle.digest('SHA-256', 'b')]).then((all) => all.map((d) => d[0]))",
        json!([202, 62]),
    );
    check(
        "return crypto.subtle.digest('SHA-256', 'ü€🎉')[0]",
        json!(212),
    );
}

#[test]
fn keys_sign_verify_encrypt_and_derive() {
    check("const k = await crypto.subtle.importKey('raw', 'Jefe', { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
           const s = crypto.subtle.sign('HMAC', k, 'what do ya want for nothing?');
           return [k.type, k.extractable, k.algorithm, s[0], crypto.subtle.verify('HMAC', k, s, 'what do ya want for nothing?'), await crypto.subtle.verify({ name: 'HMAC' }, k, s, 'x')]",
        json!(["secret", false, { "name": "HMAC", "hash": { "name": "SHA-256" }, "length": 32 }, 0x5b, true, false]));
    check("const k = crypto.subtle.importKey('raw', new Uint8Array(32), 'AES-GCM', true, ['encrypt', 'decrypt']); const iv = crypto.getRandomValues(new Uint8Array(12));
           const c = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: 'x' }, k, 'secret'); const p = await crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData: 'x' }, k, c);
           return [c.length, String.fromCharCode(...p), (await crypto.subtle.exportKey('raw', k)).length]", json!([22, "secret", 32]));
    check("const k = crypto.subtle.importKey('raw', 'password', 'PBKDF2', false, ['deriveBits', 'deriveKey']); const p = { name: 'PBKDF2', salt: 'salt', iterations: 1, hash: 'SHA-256' };
           const a = await crypto.subtle.deriveKey(p, k, { name: 'AES-GCM', length: 256 }, true, ['encrypt']);
           return [crypto.subtle.deriveBits(p, k, 256)[0], a.algorithm, crypto.subtle.exportKey('raw', a)[0]]", json!([0x12, { "name": "AES-GCM", "length": 256 }, 0x12]));
    check(
        "const k = crypto.subtle.importKey('raw', new Uint8Array(22).fill(11), 'HKDF', false, ['deriveBits']); return crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt: [], info: [] }, k, 336)[0]",
        json!(0x8d),
    );
    check(
        "const k = crypto.subtle.generateKey({ name: 'AES-GCM', length: 128 }, true, ['encrypt']); return crypto.subtle.exportKey('raw', k).length",
        json!(16),
    );
    check(
        "const k = crypto.subtle.importKey('jwk', { kty: 'oct', k: 'SmVmZQ' }, { name: 'HMAC', hash: { name: 'SHA-1', legacy: true } }, false, []); return crypto.subtle.sign('HMAC', k, 'what do ya want for nothing?')[0]",
        json!(0xef),
    );
}

#[test]
fn random_fills_all_of_wide_arrays() {
    check(
        "return Array.from(crypto.getRandomValues(new Uint32Array(2)))",
        json!([0x0403_0201, 0x0807_0605]),
    );
    check(
        "return Array.from(crypto.getRandomValues([0, 0, 0]))",
        json!([1, 2, 3]),
    );
    check(
        "const a = new Uint16Array(3); return crypto.getRandomValues(a.subarray(1)) && Array.from(a)",
        json!([0, 0x0201, 0x0403]),
    );
    check(
        "return crypto.getRandomValues(new Uint8Array(65536)).length",
        json!(65536),
    );
    check(
        "return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
        json!(true),
    );
}

/// What a script does, and the reason it gets.
const FAULTS: &[(&str, &str)] = &[
    (
        "crypto.getRandomValues(new Uint32Array(16385))",
        "array-too-large",
    ),
    ("crypto.getRandomValues({ length: 1e9 })", "array-too-large"),
    ("crypto.getRandomValues(new Float64Array(1))", "not-array"),
    ("crypto.getRandomValues('x')", "not-array"),
    ("crypto.getRandomValues({})", "not-array"),
    ("crypto.getRandomValues()", "missing-args"),
    ("crypto.subtle.digest('SHA-1', '')", "unsupported-algorithm"),
    ("crypto.subtle.digest('SHA-256')", "missing-args"),
    ("crypto.subtle.digest({}, '')", "invalid-algorithm"),
    ("crypto.subtle.digest('SHA-256', 5)", "missing-args"),
    (
        "crypto.subtle.importKey('pkcs8', 'k', 'HMAC')",
        "unsupported-format",
    ),
    (
        "crypto.subtle.importKey('raw', 'k', 'RSA-PSS')",
        "unsupported-algorithm",
    ),
    (
        "crypto.subtle.importKey('raw', 'k', { name: 'HMAC', hash: 'MD5' })",
        "unsupported-hash",
    ),
    (
        "crypto.subtle.importKey('raw', 'k', {})",
        "invalid-algorithm",
    ),
    ("crypto.subtle.importKey('raw')", "missing-args"),
    (
        "crypto.subtle.importKey('raw', 'short', 'AES-GCM')",
        "invalid-key",
    ),
    ("crypto.subtle.importKey('raw', '', 'HMAC')", "invalid-key"),
    ("crypto.subtle.sign('HMAC', {}, 'x')", "invalid-key"),
    (
        "crypto.subtle.sign('HMAC', crypto.subtle.importKey('raw', 'k', 'HMAC', false, ['verify']), 'x')",
        "invalid-key",
    ),
    (
        "crypto.subtle.sign('ECDSA', {}, 'x')",
        "unsupported-algorithm",
    ),
    (
        "crypto.subtle.verify('HMAC', crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM'), 'x', 'y')",
        "invalid-key",
    ),
    (
        "crypto.subtle.encrypt({ name: 'AES-CBC', iv: 'x' }, {}, 'x')",
        "unsupported-algorithm",
    ),
    (
        "crypto.subtle.encrypt({ name: 'AES-GCM' }, {}, 'x')",
        "missing-args",
    ),
    (
        "crypto.subtle.encrypt({ name: 'AES-GCM', iv: '' }, crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM'), 'x')",
        "invalid-iv",
    ),
    (
        "crypto.subtle.decrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-GCM'), new Uint8Array(20))",
        "decrypt-failed",
    ),
    (
        "crypto.subtle.exportKey('raw', crypto.subtle.importKey('raw', 'k', 'HMAC'))",
        "invalid-key",
    ),
    ("crypto.subtle.exportKey('spki', {})", "unsupported-format"),
    (
        "crypto.subtle.deriveBits({ name: 'PBKDF2', salt: 's', iterations: 1e9 }, crypto.subtle.importKey('raw', 'k', 'PBKDF2'), 256)",
        "too-many-iterations",
    ),
    (
        "crypto.subtle.deriveBits({ name: 'PBKDF2', salt: 's', iterations: 1 }, crypto.subtle.importKey('raw', 'k', 'PBKDF2'), 7)",
        "invalid-length",
    ),
    (
        "crypto.subtle.deriveBits({ name: 'ECDH' }, {}, 256)",
        "unsupported-algorithm",
    ),
];

#[test]
fn faults_of_the_face() {
    for (script, expected) in FAULTS {
        check(
            &format!(
                "try {{ {script}; return 'no fault'; }} catch (e) {{ return [e.reason, typeof e.kind, e.helper.startsWith('crypto.')]; }}"
            ),
            json!([expected, "string", true]),
        );
    }
}

/// Our own rounds of PBKDF2, against somebody else's.
#[test]
fn stretched_keys_are_those_of_another_implementation() {
    let cases = [
        ("SHA-256", 1, 32),
        ("SHA-256", 1_025, 70),
        ("SHA-384", 513, 48),
        ("SHA-512", 3, 200),
    ];
    for (hash, iterations, length) in cases {
        let (password, salt) = (b"correct horse".as_slice(), b"battery".as_slice());
        let mut expected = vec![0; length];
        let rounds = u32::try_from(iterations).unwrap();
        match hash {
            "SHA-256" => pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password, salt, rounds, &mut expected),
            "SHA-384" => pbkdf2::pbkdf2_hmac::<sha2::Sha384>(password, salt, rounds, &mut expected),
            _ => pbkdf2::pbkdf2_hmac::<sha2::Sha512>(password, salt, rounds, &mut expected),
        }
        let asked = json!({"hash": hash, "iterations": iterations, "length": length, "parts": [password.len(), salt.len()]});
        let (_, key) = call("crypto.pbkdf2", asked, &[password, salt].concat()).unwrap();
        assert_eq!(key, expected, "{hash} {iterations} {length}");
    }
}
