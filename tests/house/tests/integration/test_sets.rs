//! Each test is run by `scripts/test.sh` or by `scripts/ci.sh`: the default profile of `.config/nextest.toml` excludes the tests of the profile `ci`.

use tracepoint_house::root;

/// The `default-filter` of a profile, without spaces.
fn filter(text: &str, profile: &str) -> String {
    let (_, profile) = text.split_once(&format!("[profile.{profile}]\n")).expect("the profile");
    let (_, filter) = profile.split_once("default-filter = \"\"\"").expect("its filter");
    let (filter, _) = filter.split_once("\"\"\"").expect("the end of it");
    filter.split_whitespace().collect()
}

#[test]
fn no_test_is_in_no_set() {
    let text = std::fs::read_to_string(root().join(".config/nextest.toml")).expect("the configuration of nextest");
    assert_eq!(filter(&text, "default"), format!("not({})", filter(&text, "ci")));
}
