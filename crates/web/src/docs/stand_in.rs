//! Valid replacement values for faulty parts of a body or query, so that reading can go on and find further faults.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};
use serde_path_to_error::Segment;

use super::{example, reference::Reference, schema::Shape};
use crate::openapi::generator;

/// A type's schema, with those it refers to.
pub(crate) struct StandIns {
    reference: Reference,
    schema: Value,
}

impl StandIns {
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let mut schemas = generator(SchemaSettings::for_deserialize);
        let schema = Value::from(schemas.subschema_for::<T>());
        let schemas = schemas.take_definitions(true);
        Self { reference: Reference::new(json!({ "components": { "schemas": schemas } })), schema }
    }

    /// A value that is valid at a path, if the schema has that path.
    pub(crate) fn at(&self, path: &[&Segment]) -> Option<Value> {
        let (mut schema, mut name) = (self.schema.clone(), "");
        for segment in path {
            schema = inside(&self.reference, &schema, segment)?;
            if let Segment::Map { key } = segment {
                name = key;
            }
        }
        Some(example::named(&self.reference, name, &schema))
    }
}

/// The schema of a member or an item.
fn inside(reference: &Reference, schema: &Value, segment: &Segment) -> Option<Value> {
    let shape = Shape::of(reference, schema);
    let here = match segment {
        Segment::Map { key } => {
            let known = shape.properties().find(|(name, ..)| *name == key).map(|(_, schema, _)| schema);
            known.or_else(|| shape.get("additionalProperties").filter(|schema| schema.is_object())).cloned()
        }
        Segment::Seq { .. } => shape.items().cloned(),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    here.or_else(|| {
        let mut others = shape.alternatives.into_iter().map(|other| Value::Object(other.schema));
        others.find_map(|other| inside(reference, &other, segment))
    })
}
