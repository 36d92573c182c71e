//! One Anima's `status.json`: whether it works, for whom, and with which model.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    Problem, file,
    sections::AnimaFields,
    shape::{self, sections},
};
use crate::{fs::FileError, i18n::Locale, layout::AnimaDir};

/// The role of an Anima that has none.
pub(crate) const DEFAULT_ROLE: &str = "general";

sections! {
    /// The fields of `status.json` besides those of [`AnimaFields`].
    StatusFields {
        /// Whether the Anima works at all; it does when nobody says otherwise.
        enabled: Option<bool> = None;
        /// Its role.
        role: Option<String> = None;
        /// Who it reports to.
        supervisor: Option<String> = None;
        /// What it is good at, in a few words.
        speciality: Option<String> = None;
        /// Whether its process is to be started again.
        restart_requested: bool = false;
        /// How it speaks; read by its own part.
        voice: BTreeMap<String, Value> = BTreeMap::new();
    }
}

/// What `status.json` says. An absent file says nothing, so everything has its default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Who it is in the organisation.
    pub fields: StatusFields,
    /// Its model and limits, where the file decides.
    pub settings: AnimaFields,
    /// What does not fit; those fields have their defaults.
    pub problems: Vec<Problem>,
    /// Whether the file has the key `supervisor`, even if it names nobody.
    pub says_supervisor: bool,
}

impl Status {
    /// Reads a `status.json`.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it is there but no JSON object: the Anima is then disabled until somebody mends it, never
    /// silently run with defaults.
    pub fn load(anima: &AnimaDir) -> Result<Self, FileError> {
        let path = anima.status();
        let object = file::read_object(&path)?.unwrap_or_default();
        let status = Self::read(&Value::Object(object));
        for problem in &status.problems {
            tracing::warn!(
                anima = %anima.name(), key = problem.key, problem = %problem.text(Locale::En),
                "status.json: value does not fit, the default is used"
            );
        }
        Ok(status)
    }

    pub(crate) fn read(value: &Value) -> Self {
        let mut problems = Vec::new();
        let mut fields: StatusFields = shape::read(value, "", &mut problems);
        // whoever wrote something else than true or false did not mean "yes"
        if problems.iter().any(|problem| problem.key == "enabled") {
            fields.enabled = Some(false);
        }
        let settings = shape::read(value, "", &mut problems);
        Self { fields, settings, problems, says_supervisor: value.get("supervisor").is_some() }
    }

    /// Changes a `status.json` in place, under its lock. Keys that `change` leaves alone stay as they are.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it cannot be read or written; it is then as it was.
    pub fn edit(anima: &AnimaDir, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), FileError> {
        file::edit_object(&anima.status(), |object| {
            change(object);
            Ok(())
        })
    }

    /// Sets one field; `None` removes it, so that the next source decides.
    ///
    /// # Errors
    ///
    /// As [`Status::edit`].
    pub fn set(anima: &AnimaDir, field: &str, value: Option<Value>) -> Result<(), FileError> {
        Self::edit(anima, |object| match value {
            Some(value) => {
                object.insert(field.to_owned(), value);
            }
            None => {
                object.shift_remove(field);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::AnimaName, layout::DataDir};

    fn anima(dir: &tempfile::TempDir) -> AnimaDir {
        let anima = DataDir::new(dir.path()).anima(&AnimaName::new("sakura").unwrap());
        fs_err::create_dir_all(anima.root()).unwrap();
        anima
    }

    #[test]
    fn an_absent_file_says_nothing_and_a_broken_one_is_an_error_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let anima = anima(&dir);
        assert_eq!(Status::load(&anima).unwrap(), Status::default());
        fs_err::write(anima.status(), "{\n  \"enabled\": true\n  \"role\": \"ops\"\n}").unwrap();
        let error = Status::load(&anima).unwrap_err();
        assert!(matches!(error, FileError::Syntax { line: 3, column: 3, .. }), "{error:?}");
        assert!(Status::set(&anima, "role", Some("x".into())).is_err());
        assert!(fs_err::read_to_string(anima.status()).unwrap().contains("ops"));
    }

    #[test]
    fn a_value_that_does_not_fit_is_reported_and_the_rest_holds() {
        let status = Status::read(&serde_json::json!({
            "enabled": "yes", "role": "ops", "max_chains": -1, "context_threshold": 0.4, "execution_mode": "zzz",
            "supervisor": "", "model": null
        }));
        let keys: Vec<_> = status.problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["enabled", "execution_mode", "max_chains"]);
        assert_eq!(status.fields.enabled, Some(false));
        assert_eq!((status.fields.role.as_deref(), status.settings.context_threshold), (Some("ops"), Some(0.4)));
        assert_eq!((status.fields.supervisor, status.settings.model), (None, None));
    }

    #[test]
    fn unknown_keys_and_their_order_survive() {
        let dir = tempfile::tempdir().unwrap();
        let anima = anima(&dir);
        fs_err::write(anima.status(), r#"{"process_model": "phase2", "model": "a", "z": [1, {"q": null}]}"#).unwrap();
        Status::set(&anima, "model", Some("claude-x".into())).unwrap();
        Status::set(&anima, "background_model", None).unwrap();
        let text = fs_err::read_to_string(anima.status()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::json!({"process_model": "phase2", "model": "claude-x", "z": [1, {"q": null}]}));
        assert!(text.find("process_model") < text.find("model\": \"claude-x"), "{text}");
    }
}
