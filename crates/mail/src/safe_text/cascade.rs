//! The CSS cascade: which declaration for an element wins, property by property.
//!
//! What the cascaded values mean for the text is decided in `style.rs`.

use super::length::Length;
use super::property::{ALL, Declaration, Display, FIXED, PROPERTIES, Property, RELATIVE, Value};

/// The cascaded value of each property of an element.
#[derive(Clone, Debug, Default)]
pub(super) struct CascadedValues(Vec<(Property, Value)>);

impl CascadedValues {
    /// Whether nothing was declared.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, property: Property) -> Option<Value> {
        self.0.iter().find(|(found, _)| *found == property).map(|(_, value)| *value)
    }

    pub(super) fn length(&self, property: Property) -> Option<Length> {
        match self.get(property) {
            Some(Value::Length(length)) => Some(length),
            _ => None,
        }
    }

    pub(super) fn flag(&self, property: Property) -> bool {
        self.get(property) == Some(Value::Flag(true))
    }

    pub(super) fn number(&self, property: Property) -> Option<f32> {
        match self.get(property) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// Whether the element is out of the flow.
    pub(super) fn is_absolute(&self) -> bool {
        self.flag(Property::Position) || self.is_fixed()
    }

    /// Whether it has a fixed position.
    pub(super) fn is_fixed(&self) -> bool {
        self.get(Property::Position) == Some(Value::Number(FIXED))
    }

    /// Whether it has a relative position.
    pub(super) fn is_relative(&self) -> bool {
        self.get(Property::Position) == Some(Value::Number(RELATIVE))
    }

    /// The layout that was asked for.
    pub(super) fn display(&self) -> Option<Display> {
        match self.get(Property::Display) {
            Some(Value::Display(display)) => Some(display),
            _ => None,
        }
    }
}

/// Weighs declarations against each other.
#[derive(Clone, Debug)]
pub(super) struct Cascade([Option<(u64, Value)>; PROPERTIES]);

/// Where a declaration comes from, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// An attribute such as `bgcolor`, or what browsers do by themselves.
    Presentation,
    /// A rule, with its specificity and order.
    Rule(u32, u32),
    /// A style attribute.
    Attribute,
    /// A frame of an animation.
    Animation,
}

impl Cascade {
    /// Nothing declared.
    pub(super) fn new() -> Self {
        Self([None; PROPERTIES])
    }

    /// Adds a declaration, unless a stronger one is there.
    pub(super) fn add(&mut self, declaration: Declaration, origin: Origin) {
        let strength = match origin {
            Origin::Presentation => 0,
            Origin::Rule(specificity, order) => (1 << 60) | u64::from(specificity) << 32 | u64::from(order),
            Origin::Attribute => 2 << 60,
            Origin::Animation => 3 << 60,
        };
        let weight = strength | u64::from(declaration.important) << 62;
        if let Some(slot) = self.0.get_mut(declaration.property as usize)
            && slot.is_none_or(|(present, _)| present <= weight)
        {
            *slot = Some((weight, declaration.value));
        }
    }

    /// Sets a property that any rule may override.
    pub(super) fn present(&mut self, property: Property, value: Value) {
        self.add(Declaration { property, value, important: false }, Origin::Presentation);
    }

    /// The cascaded values.
    pub(super) fn cascaded(&self) -> CascadedValues {
        CascadedValues(
            ALL.into_iter().zip(self.0).filter_map(|(property, slot)| Some((property, slot?.1))).collect(),
        )
    }
}
