//! Events of the program's own, with typed fields.
use crate::name::c;
use crate::sys::{self, tacho__event, tacho__field, tacho__schema};
use crate::text::with_c;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::borrow::Cow;
use std::sync::Arc;

/// An event with typed fields, of which the trace describes name and fields itself.
///
/// ```
/// #[derive(tacho::Event)]
/// struct Order<'a> {
///     id: u64,
///     total: f64,
///     express: bool,
///     customer: Option<&'a str>,
/// }
///
/// # use tacho::Event;
/// Order { id: 7, total: 19.9, express: false, customer: None }.record();
/// ```
///
/// A field is of a type that is a [`Value`]; an `Option` may be absent. An event has 1 to 16 fields.
/// Strings are cut at 512 bytes, or at their first zero, and a record at 1 KiB.
///
/// `#[tacho(name = "order_done")]` before the struct gives it another name, `#[tacho(skip)]` before a
/// field leaves that out.
pub trait Event {
    /// Records it, if recording is on.
    fn record(&self);
}

/// What a field of an [`Event`] can be.
///
/// A type of one's own becomes one by handing on to another:
///
/// ```
/// struct Bytes(u64);
/// impl tacho::Value for Bytes {
///     const TYPE: tacho::ValueType = <u64 as tacho::Value>::TYPE;
///     fn put(&self, values: &mut tacho::Values) {
///         self.0.put(values);
///     }
/// }
/// ```
pub trait Value {
    /// What the field is in the trace.
    const TYPE: ValueType;
    /// Puts it behind those that are there already.
    fn put(&self, values: &mut Values);
}

/// What a field is in the trace: that of one of the types of this crate.
#[derive(Clone, Copy)]
pub struct ValueType(u8);

/// The values of an event that is being recorded.
pub struct Values(MaybeUninit<tacho__event>);

/// Of an event. What is put beyond is left out: a `Value` of the program's may put more than one.
const FIELDS: u32 = 16;

impl Values {
    #[inline]
    fn word(&mut self, word: u64) {
        let event = self.0.as_mut_ptr();
        // SAFETY: all but the words is initialised (see `store`), and so is this word then. There are
        // 128 words: texts leave one for each field that is still to come.
        unsafe {
            if (*event).field < FIELDS {
                let words = ptr::addr_of_mut!((*event).words).cast::<u64>();
                words.add((*event).used as usize).write(word);
                (*event).present |= 1 << (*event).field;
                (*event).field += 1;
                (*event).used += 1;
            }
        }
    }

    fn text(&mut self, text: &str) {
        let event = self.0.as_mut_ptr();
        // SAFETY: the event is as above, the text ends with a zero.
        unsafe {
            if (*event).field < FIELDS {
                with_c(text, |c| (sys::calls().event_string)(event, c));
            }
        }
    }

    #[inline]
    fn absent(&mut self) {
        let event = self.0.as_mut_ptr();
        // SAFETY: it is initialised.
        unsafe {
            if (*event).field < FIELDS {
                (*event).field += 1;
            }
        }
    }
}

macro_rules! values {
    ($($constant:ident: $($Type:ty),* => |$value:ident, $values:ident| $put:expr;)*) => {$($(
        impl Value for $Type {
            const TYPE: ValueType = ValueType(sys::$constant);
            #[inline]
            #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // of one of the types
            fn put(&self, $values: &mut Values) {
                let $value = self;
                $put
            }
        }
    )*)*};
}

values! {
    TACHO_FIELD_U64: u8, u16, u32, u64, usize => |value, values| values.word(*value as u64);
    TACHO_FIELD_I64: i8, i16, i32, i64, isize => |value, values| values.word(*value as i64 as u64);
    TACHO_FIELD_F64: f32, f64 => |value, values| values.word(f64::from(*value).to_bits());
    TACHO_FIELD_BOOL: bool => |value, values| values.word((*value).into());
    TACHO_FIELD_STRING: str, String, Box<str>, Arc<str>, Cow<'_, str> => |value, values| values.text(value);
}

impl<V: Value + ?Sized> Value for &V {
    const TYPE: ValueType = V::TYPE;
    #[inline]
    fn put(&self, values: &mut Values) {
        (**self).put(values);
    }
}

impl<V: Value> Value for Option<V> {
    const TYPE: ValueType = ValueType(sys::TACHO_FIELD_OPTIONAL | V::TYPE.0);
    #[inline]
    fn put(&self, values: &mut Values) {
        match self {
            Some(value) => value.put(values),
            None => values.absent(),
        }
    }
}

/// For `derive(Event)`: name and fields of an event.
#[doc(hidden)]
pub struct Schema(tacho__schema);

#[doc(hidden)]
#[repr(transparent)]
pub struct Field(tacho__field);

impl Field {
    /// `name` ends with a zero.
    pub const fn new(type_: ValueType, name: &'static str) -> Self {
        Field(tacho__field { type_: type_.0, name: c(name) })
    }
}

impl Schema {
    /// `name` ends with a zero.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        assert!(fields.len() <= FIELDS as usize, "an event has at most 16 fields");
        Schema(tacho__schema {
            id: AtomicU32::new(0),
            count: fields.len() as u32,
            name: c(name),
            // `Field` is only a wrapper.
            fields: fields.as_ptr().cast::<tacho__field>(),
        })
    }

    /// Records an event of this schema, whose values `put` puts in the order of the fields.
    #[inline]
    pub fn record(&'static self, put: impl FnOnce(&mut Values)) {
        if sys::recording() {
            self.store(put);
        }
    }

    #[inline]
    fn store(&'static self, put: impl FnOnce(&mut Values)) {
        let mut values = Values(MaybeUninit::uninit());
        let event = values.0.as_mut_ptr();
        // SAFETY: the schema is static, and the event is filled as tacho.h does it.
        unsafe {
            let mut id = self.0.id.load(Relaxed);
            if id == 0 {
                id = (sys::calls().define_schema)(&self.0);
            }
            (*event).schema = id;
            (*event).used = 1;
            (*event).field = 0;
            (*event).present = 0;
            put(&mut values);
            (sys::calls().event_put)(event);
        }
    }
}
