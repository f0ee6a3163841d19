//! Writes decimal numbers.

use itoa::Buffer;

/// Appends `number`.
pub(super) fn write(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(Buffer::new().format(number).as_bytes());
}

/// Appends nanoseconds below a second, as a point and nine digits.
pub(super) fn write_fraction(line: &mut Vec<u8>, nanoseconds: u64) {
    line.push(b'.');
    // The digit of the second pads the number with zeros.
    line.extend_from_slice(&Buffer::new().format(1_000_000_000 + nanoseconds).as_bytes()[1..]);
}

/// Appends nanoseconds as seconds with nine decimal places.
pub(super) fn write_seconds(line: &mut Vec<u8>, nanoseconds: u64) {
    write(line, nanoseconds / 1_000_000_000);
    write_fraction(line, nanoseconds % 1_000_000_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut line = Vec::new();
        write(&mut line);
        String::from_utf8(line).expect("digits")
    }

    #[test]
    fn numbers_are_as_the_standard_library_writes_them() {
        let powers = (0..20).map(|power| 10_u64.pow(power)).flat_map(|power| [power - 1, power, power + 1]);
        for number in powers.chain([u64::MAX, 0, 42, 105]) {
            assert_eq!(text(|line| write(line, number)), number.to_string());
        }
        for nanoseconds in [0, 1, 10, 123_456_789, 999_999_999, 100_000_000, 90_000_009] {
            assert_eq!(text(|line| write_fraction(line, nanoseconds)), format!(".{nanoseconds:09}"));
        }
    }
}
