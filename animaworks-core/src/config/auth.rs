//! `auth.json`: who may use the pages (server-cli-ui §3.1).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    Problem, Secret, file,
    shape::{self, choices, sections},
};
use crate::{fs::FileError, i18n::Locale, layout::DataDir};

choices! {
    /// How people prove who they are.
    AuthMode {
        /// Not at all: whoever reaches the server is the owner.
        LocalTrust = "local_trust",
        /// The owner, with a password.
        Password = "password",
        /// Several people, each with a password.
        MultiUser = "multi_user",
    }

    /// What a person may do.
    UserRole {
        /// Everything.
        Owner = "owner",
        /// Everything but other people.
        Admin = "admin",
        /// Talk.
        User = "user",
    }
}

sections! {
    /// `auth.json`.
    Auth {
        /// How people prove who they are.
        auth_mode: AuthMode = AuthMode::LocalTrust;
        /// Whether somebody at this machine counts as the owner.
        trust_localhost: bool = true;
        /// The owner.
        owner: Option<User> = None;
        /// Everybody else.
        users: Vec<User> = Vec::new();
        /// Sessions made under an older version are void.
        token_version: u32 = 1;
        /// Who is logged in, by token.
        sessions: BTreeMap<String, Session> = BTreeMap::new();
        /// What cookies are signed with.
        secret_key: Secret = Secret::default();
    }

    /// A person.
    User {
        /// The name to log in with.
        username: String = String::new();
        /// The name to be called by.
        display_name: String = String::new();
        /// A few words about the person.
        bio: String = String::new();
        /// The hash of the password (Argon2id); none when it is not set.
        password_hash: Option<Secret> = None;
        /// What the person may do.
        role: UserRole = UserRole::User;
        /// Since when.
        created_at: String = String::new();
    }

    /// A login.
    Session {
        /// Whose it is.
        username: String = String::new();
        /// Since when.
        created_at: String = String::new();
    }
}

impl Auth {
    /// Reads `auth.json`. Without one everybody at this machine is trusted. A value that does not fit locks rather
    /// than opens: the mode is then `password`, and localhost is not trusted.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it is there but cannot be read: nobody may be let in then.
    pub fn load(data: &DataDir) -> Result<(Self, Vec<Problem>), FileError> {
        let object = file::read_object(&data.auth())?.unwrap_or_default();
        let mut problems = Vec::new();
        let mut auth: Self = shape::read(&Value::Object(object), "", &mut problems);
        for problem in &problems {
            tracing::warn!(key = problem.key, problem = %problem.text(Locale::En), "auth.json: value does not fit");
            match problem.key.as_str() {
                "auth_mode" => auth.auth_mode = AuthMode::Password,
                "trust_localhost" => auth.trust_localhost = false,
                _ => {}
            }
        }
        Ok((auth, problems))
    }

    /// Changes `auth.json` in place, under its lock, keeping everything `change` leaves alone (mode 0600).
    ///
    /// # Errors
    ///
    /// [`FileError`]; the file is then as it was.
    pub fn edit<T>(data: &DataDir, change: impl FnOnce(&mut Map<String, Value>) -> T) -> Result<T, FileError> {
        file::edit_object(&data.auth(), |object| Ok(change(object)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> (tempfile::TempDir, DataDir) {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::new(dir.path());
        fs_err::write(data.auth(), text).unwrap();
        (dir, data)
    }

    #[test]
    fn people_and_sessions_are_read_and_no_secret_is_shown() {
        let (_dir, data) = data(
            r#"{"auth_mode": "multi_user", "trust_localhost": false, "secret_key": "sign-test", "token_version": 3, "x": [1],
                "owner": {"username": "hale", "display_name": "Hale", "password_hash": "$argon2id$test", "role": "owner", "y": 2},
                "users": [{"username": "moss", "password_hash": null, "role": "admin"}],
                "sessions": {"tok": {"username": "hale", "created_at": "2026-03-31T09:15:02+09:00"}}}"#,
        );
        let (auth, problems) = Auth::load(&data).unwrap();
        assert_eq!(problems, []);
        assert_eq!((auth.auth_mode, auth.trust_localhost, auth.token_version), (AuthMode::MultiUser, false, 3));
        let owner = auth.owner.clone().unwrap();
        assert_eq!((owner.username.as_str(), owner.role), ("hale", UserRole::Owner));
        assert_eq!(owner.password_hash.unwrap().expose(), "$argon2id$test");
        assert_eq!((auth.users[0].role, &auth.users[0].password_hash), (UserRole::Admin, &None));
        assert!(auth.sessions.contains_key("tok"));
        let shown = format!("{auth:?}");
        assert!(!shown.contains("argon2id") && !shown.contains("sign-test"), "{shown}");
        Auth::edit(&data, |object| object.insert("token_version".into(), 4.into())).unwrap();
        let written: Value = serde_json::from_str(&fs_err::read_to_string(data.auth()).unwrap()).unwrap();
        assert_eq!(
            (&written["x"][0], &written["owner"]["y"], &written["token_version"]),
            (&1.into(), &2.into(), &4.into())
        );
        assert_eq!(written["secret_key"], "sign-test");
    }

    #[test]
    fn what_cannot_be_read_lets_nobody_in() {
        let (_dir, locked) = data(r#"{"auth_mode": "pasword", "trust_localhost": "yes"}"#);
        let (auth, problems) = Auth::load(&locked).unwrap();
        assert_eq!((auth.auth_mode, auth.trust_localhost, problems.len()), (AuthMode::Password, false, 2));
        let (_dir, broken) = data("{");
        assert!(Auth::load(&broken).is_err());
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(Auth::load(&DataDir::new(empty.path())).unwrap().0, Auth::default());
    }
}
