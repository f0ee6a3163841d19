//! Any number of fields, without a `recursion_limit`.

use std::sync::{Arc, Mutex};
use tracepoint::field::Value;
use tracepoint::marker::{Aggregate, FieldView, Subscriber};

macro_rules! declare {
    ($($name:ident = $n:literal),* $(,)?) => {
        tracepoint::define_trace! {
            provider = "many";
            fields(base: u16) { $($name: u16 = base + $n),* }
        }
    };
}

declare! {
    f0 = 0, f1 = 1, f2 = 2, f3 = 3, f4 = 4, f5 = 5, f6 = 6, f7 = 7, f8 = 8, f9 = 9,
    f10 = 10, f11 = 11, f12 = 12, f13 = 13, f14 = 14, f15 = 15, f16 = 16, f17 = 17, f18 = 18, f19 = 19,
    f20 = 20, f21 = 21, f22 = 22, f23 = 23, f24 = 24, f25 = 25, f26 = 26, f27 = 27, f28 = 28, f29 = 29,
    f30 = 30, f31 = 31, f32 = 32, f33 = 33, f34 = 34, f35 = 35, f36 = 36, f37 = 37, f38 = 38, f39 = 39,
    f40 = 40, f41 = 41, f42 = 42, f43 = 43, f44 = 44, f45 = 45, f46 = 46, f47 = 47, f48 = 48, f49 = 49,
    f50 = 50, f51 = 51, f52 = 52, f53 = 53, f54 = 54, f55 = 55, f56 = 56, f57 = 57, f58 = 58, f59 = 59,
    f60 = 60, f61 = 61, f62 = 62, f63 = 63, f64 = 64, f65 = 65, f66 = 66, f67 = 67, f68 = 68, f69 = 69,
    f70 = 70, f71 = 71, f72 = 72, f73 = 73, f74 = 74, f75 = 75, f76 = 76, f77 = 77, f78 = 78, f79 = 79,
    f80 = 80, f81 = 81, f82 = 82, f83 = 83, f84 = 84, f85 = 85, f86 = 86, f87 = 87, f88 = 88, f89 = 89,
    f90 = 90, f91 = 91, f92 = 92, f93 = 93, f94 = 94, f95 = 95, f96 = 96, f97 = 97, f98 = 98, f99 = 99,
    f100 = 100, f101 = 101, f102 = 102, f103 = 103, f104 = 104, f105 = 105, f106 = 106, f107 = 107, f108 = 108, f109 = 109,
    f110 = 110, f111 = 111, f112 = 112, f113 = 113, f114 = 114, f115 = 115, f116 = 116, f117 = 117, f118 = 118, f119 = 119,
    f120 = 120, f121 = 121, f122 = 122, f123 = 123, f124 = 124, f125 = 125, f126 = 126, f127 = 127, f128 = 128, f129 = 129,
    f130 = 130, f131 = 131, f132 = 132, f133 = 133, f134 = 134, f135 = 135, f136 = 136, f137 = 137, f138 = 138, f139 = 139,
    f140 = 140, f141 = 141, f142 = 142, f143 = 143, f144 = 144, f145 = 145, f146 = 146, f147 = 147, f148 = 148, f149 = 149,
    f150 = 150, f151 = 151, f152 = 152, f153 = 153, f154 = 154, f155 = 155, f156 = 156, f157 = 157, f158 = 158, f159 = 159,
    f160 = 160, f161 = 161, f162 = 162, f163 = 163, f164 = 164, f165 = 165, f166 = 166, f167 = 167, f168 = 168, f169 = 169,
    f170 = 170, f171 = 171, f172 = 172, f173 = 173, f174 = 174, f175 = 175, f176 = 176, f177 = 177, f178 = 178, f179 = 179,
    f180 = 180, f181 = 181, f182 = 182, f183 = 183, f184 = 184, f185 = 185, f186 = 186, f187 = 187, f188 = 188, f189 = 189,
    f190 = 190, f191 = 191, f192 = 192, f193 = 193, f194 = 194, f195 = 195, f196 = 196, f197 = 197, f198 = 198, f199 = 199,
    f200 = 200, f201 = 201, f202 = 202, f203 = 203, f204 = 204, f205 = 205, f206 = 206, f207 = 207, f208 = 208, f209 = 209,
    f210 = 210, f211 = 211, f212 = 212, f213 = 213, f214 = 214, f215 = 215, f216 = 216, f217 = 217, f218 = 218, f219 = 219,
    f220 = 220, f221 = 221, f222 = 222, f223 = 223, f224 = 224, f225 = 225, f226 = 226, f227 = 227, f228 = 228, f229 = 229,
    f230 = 230, f231 = 231, f232 = 232, f233 = 233, f234 = 234, f235 = 235, f236 = 236, f237 = 237, f238 = 238, f239 = 239,
    f240 = 240, f241 = 241, f242 = 242, f243 = 243, f244 = 244, f245 = 245, f246 = 246, f247 = 247, f248 = 248, f249 = 249,
    f250 = 250, f251 = 251, f252 = 252, f253 = 253, f254 = 254, f255 = 255, f256 = 256, f257 = 257, f258 = 258, f259 = 259,
    f260 = 260, f261 = 261, f262 = 262, f263 = 263, f264 = 264, f265 = 265, f266 = 266, f267 = 267, f268 = 268, f269 = 269,
    f270 = 270, f271 = 271, f272 = 272, f273 = 273, f274 = 274, f275 = 275, f276 = 276, f277 = 277, f278 = 278, f279 = 279,
    f280 = 280, f281 = 281, f282 = 282, f283 = 283, f284 = 284, f285 = 285, f286 = 286, f287 = 287, f288 = 288, f289 = 289,
    f290 = 290, f291 = 291, f292 = 292, f293 = 293, f294 = 294, f295 = 295, f296 = 296, f297 = 297, f298 = 298, f299 = 299,
}

/// Stores the fields, by index and as bytes.
#[derive(Default)]
struct Keep(Mutex<(Vec<u64>, Vec<u8>)>);

impl Aggregate for Keep {
    fn observe(&self, _: u64, event: FieldView<'_>) {
        let mut kept = self.0.lock().expect("not poisoned");
        for index in 0.. {
            match event.get(index) {
                Some(Value::Unsigned(value)) => kept.0.push(value),
                Some(other) => panic!("an integer, not {other:?}"),
                None => break,
            }
        }
        event.encode(&mut kept.1);
    }
}

#[test]
fn three_hundred_fields() {
    let keep = Arc::new(Keep::default());
    let marker = tracepoint::find("many:fields").expect("listed").marker().expect("has fields");
    let subscription = marker.subscribe(Subscriber::aggregate(Arc::clone(&keep) as _)).expect("switches");
    trace_fields(1000);
    drop(subscription);
    let kept = keep.0.lock().expect("not poisoned");
    assert_eq!(kept.0, (1000..1300).collect::<Vec<u64>>());
    assert_eq!(kept.1, (1000..1300u16).flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    assert_eq!(marker.fields().len(), 300);
}
