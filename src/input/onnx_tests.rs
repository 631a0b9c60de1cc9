use super::*;
use proptest::prelude::*;
use std::os::unix::fs::FileExt;

fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field that holds bytes.
fn field(number_of: u64, content: &[u8]) -> Vec<u8> {
    [number(number_of << 3 | 2), number(content.len() as u64), content.to_vec()].concat()
}

fn pair(key: &str, value: &str) -> Vec<u8> {
    field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
}

/// A tensor whose weights lie in a file, or which only names one.
fn tensor(location: &str, external: bool) -> Vec<u8> {
    let whence = [number(14 << 3), number(u64::from(external))].concat();
    [field(9, b"raw data"), pair("location", location), pair("offset", "16"), whence].concat()
}

fn walked(model: &[u8]) -> Result<Vec<String>, WalkError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), model).unwrap();
    external_files(file.path()).map(|found| found.into_iter().collect())
}

#[test]
fn files_are_found_wherever_a_tensor_may_be() {
    let weights = |name: &str| tensor(name, true);
    let node = |attribute: Vec<u8>| field(1, &field(5, &attribute));
    let inner = field(5, &weights("in a subgraph"));
    let graph = [
        field(5, &weights("initializer")),
        field(5, &tensor("not external", false)),
        field(15, &field(1, &weights("sparse"))),
        node(field(5, &weights("constant"))),
        node(field(11, &inner)),
        field(11, b"an input of the graph"),
    ]
    .concat();
    let function = field(7, &field(5, &field(10, &weights("in a function"))));
    let model = [
        vec![0x08, 9],
        field(2, b"producer"),
        field(7, &graph),
        field(25, &function),
        field(20, &field(1, &field(5, &weights("training")))),
    ]
    .concat();
    let expected = ["constant", "in a function", "in a subgraph", "initializer", "sparse", "training"];
    assert_eq!(walked(&model).unwrap(), expected);
    assert_eq!(walked(&[]).unwrap(), [""; 0]);
}

#[test]
fn what_is_stepped_over_is_not_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let huge = 3_u64 << 30;
    let raw = [number(9 << 3 | 2), number(huge)].concat();
    let after = [pair("location", "behind it"), number(14 << 3), vec![1]].concat();
    let length = raw.len() as u64 + huge + after.len() as u64;
    let tensor_head = [number(5 << 3 | 2), number(length)].concat();
    let graph_head = [number(7 << 3 | 2), number(length + tensor_head.len() as u64)].concat();
    let head = [graph_head, tensor_head, raw].concat();
    file.as_file().write_all_at(&head, 0).unwrap();
    file.as_file().write_all_at(&after, head.len() as u64 + huge).unwrap();
    let start = std::time::Instant::now();
    assert_eq!(external_files(file.path()).unwrap().into_iter().collect::<Vec<_>>(), ["behind it"]);
    assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn hostile_files_end_with_an_error() {
    let mut deep = Vec::new();
    for _ in 0..60 {
        deep = field(1, &field(5, &field(6, &deep)));
    }
    assert!(matches!(walked(&field(7, &deep)), Err(WalkError::TooMuch(_))));
    assert!(matches!(walked(b"this is text and no model"), Err(WalkError::Malformed(_))));
    assert!(matches!(walked(&[0x3a, 0xff, 0xff, 0xff, 0x0f]), Err(WalkError::Malformed(_))));
    assert!(matches!(walked(&[0xff; 20]), Err(WalkError::Malformed(_))));
    let long = field(7, &field(5, &tensor(&"x".repeat(5000), true)));
    assert!(matches!(walked(&long), Err(WalkError::TooMuch(_))));
    let many: Vec<u8> = (0..5000).flat_map(|name| field(5, &tensor(&name.to_string(), true))).collect();
    assert!(matches!(walked(&field(7, &many)), Err(WalkError::TooMuch("files"))));
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..200, byte: u8) {
        let _ = walked(&bytes);
        let mut model = field(7, &field(5, &tensor("weights.bin", true)));
        let place = at % model.len();
        model[place] = byte;
        let _ = walked(&model);
    }
}
