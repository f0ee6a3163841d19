//! Formats of entries, and postambles with tags.

use datatrace::{DtReader, FieldValue, Format, Layout, TraceOptions, tagged};

fn shown(format: &str, entry: &[u8]) -> String {
    let format: Format = format.parse().unwrap();
    let fields: Vec<_> = format.values(entry).map(|(field, value)| format!("{}={value}", field.name)).collect();
    fields.join(" ")
}

#[test]
fn every_type_is_shown() {
    let mut entry = Vec::new();
    entry.extend(7u8.to_le_bytes());
    entry.extend((-2i16).to_le_bytes());
    entry.extend(0x0A00_0001u32.to_le_bytes());
    entry.extend(i64::MIN.to_le_bytes());
    entry.extend(u128::MAX.to_le_bytes());
    entry.extend((-1i128).to_le_bytes());
    entry.extend(1.5f32.to_le_bytes());
    entry.extend((-0.25f64).to_le_bytes());
    entry.extend([1, 0xAB, 0xCD]);
    let format = "ttl:u8, i16 src:u32/x\tlow:i64 u128 i128 f32 f64 ok:bool sum:[2]";
    assert_eq!(
        shown(format, &entry),
        "ttl=7 arg2=-2 src=0xa000001 low=-9223372036854775808 arg5=340282366920938463463374607431768211455 arg6=-1 \
         arg7=1.5 arg8=-0.25 ok=true sum=abcd"
    );
    assert_eq!(shown("a:i16/x", &(-2i16).to_le_bytes()), "a=0xfffe");
    let parsed: Format = format.parse().unwrap();
    assert_eq!(parsed.to_string().parse::<Format>().unwrap(), parsed);
}

#[test]
fn an_invalid_format_is_an_error_with_a_position() {
    let wrong = |text: &str| text.parse::<Format>().unwrap_err().to_string();
    assert_eq!(
        wrong("a:u8 b:int"),
        "column 6: `int` is not a type; expected u8 to u128, i8 to i128, f32, f64, bool or [N]"
    );
    assert_eq!(wrong("ä:u8 :u8"), "column 6: expected a name in front of the colon in `:u8`");
    assert!(wrong("  ").ends_with("there is no field; expected a type, as in `len:u16`"));
    assert!(wrong("[0]").starts_with("column 1: `[0]` is not a type"));
    assert!(wrong("[1048576] u8").ends_with("an entry would have more than 1048576 bytes"));
}

#[test]
fn a_file_names_its_format() {
    let (_alone, place) = crate::object::alone();
    let object = TraceOptions::new(Layout::new(100, 3)).directory(place.path()).create("format").unwrap();
    let format: Format = "n:u8".parse().unwrap();
    object.append_postamble(tagged(*b"note", b"first")).unwrap();
    object.append_postamble(tagged(*b"form", b"n:i8")).unwrap();
    object.append_postamble(format.to_postamble()).unwrap();
    object.append_postamble(*b"without a tag").unwrap();
    object.append_postamble(tagged(*b"form", b"hidden behind it")).unwrap();
    object.trace1(200u8).unwrap();
    object.close().unwrap();
    let file = DtReader::open(object.path()).unwrap();
    let tags: Vec<_> = file.tagged_postambles().map(|tagged| tagged.unwrap().tag).collect();
    assert_eq!(tags, [*b"note", *b"form", *b"form"]);
    let read = file.format().unwrap().unwrap();
    assert_eq!(read, format, "of several the last");
    let entry = file.entries(read.size(), 0).next().unwrap().unwrap();
    let value = read.values(&entry.bytes).next().unwrap().1;
    assert_eq!(value, FieldValue::Unsigned(200, false));
}

#[test]
fn a_torn_postamble_is_ignored() {
    let whole = tagged(*b"form", b"n:u8");
    let mut file: Vec<u8> = [1i32, 10, 0, -1, 0].iter().flat_map(|field| field.to_le_bytes()).collect();
    file.extend(tagged(*b"form", b"n:i8"));
    let before = file.len();
    file.extend(&whole);
    let format = |bytes: &[u8]| DtReader::from_bytes(bytes.to_vec()).unwrap().format().unwrap().unwrap().to_string();
    assert_eq!(format(&file), "n:u8");
    for cut in before..file.len() {
        assert_eq!(format(&file[..cut]), "n:i8", "the one before it");
    }
    for at in before..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 0x40;
        assert_eq!(format(&changed), "n:i8", "byte {at}");
    }
    let mut wrong = file[..20].to_vec();
    wrong.extend(tagged(*b"form", b"n:what"));
    let error = DtReader::from_bytes(wrong).unwrap().format().unwrap_err().to_string();
    assert!(error.starts_with("dt file: postamble at byte 20: the format: column 1: `what` is not a type"), "{error}");
}
