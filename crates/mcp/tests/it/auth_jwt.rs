//! Signatures of tokens, against another implementation: every token of
//! `cases/auth/signatures.json` was signed, rightly or wrongly, with OpenSSL.

use mcp::auth::jwt::{PublicKey, RawToken};
use serde_json::Value;

#[test]
fn every_signature_of_the_table() {
    let cases = include_str!("../../../../cases/auth/signatures.json");
    let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
    assert!(cases.len() > 70);
    let mut good = 0;
    for case in &cases {
        let token = RawToken::read(case["token"].as_str().unwrap());
        let key = PublicKey::read(&case["key"]);
        let claims = token.zip(key).and_then(|(token, key)| token.verified(&key));
        let is_good = case["good"] == true;
        assert_eq!(claims.is_some(), is_good, "{}", case["what"]);
        if let Some(claims) = claims {
            assert_eq!(claims["sub"], "ada");
            good += 1;
        }
    }
    assert!(good >= 10);
}
