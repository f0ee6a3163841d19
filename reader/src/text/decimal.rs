//! Writes decimal numbers, two digits at a time: most of a line is numbers.

/// All numbers of two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Appends `number`.
pub(super) fn write(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while number >= 100 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    at -= 2;
    digits[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    at += usize::from(number < 10);
    line.extend_from_slice(&digits[at..]);
}

/// Appends nanoseconds below a second, as a point and nine digits.
pub(super) fn write_fraction(line: &mut Vec<u8>, mut nanoseconds: u64) {
    let mut digits = *b".000000000";
    for at in [8, 6, 4, 2] {
        digits[at..at + 2].copy_from_slice(&PAIRS[(nanoseconds % 100) as usize]);
        nanoseconds /= 100;
    }
    digits[1] = PAIRS[(nanoseconds % 10) as usize][1];
    line.extend_from_slice(&digits);
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
