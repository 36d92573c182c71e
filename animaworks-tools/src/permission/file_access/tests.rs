//! The table of exec spec §5.3 and test vector A11.

use std::os::unix::fs::symlink;

use super::{super::parse, *};

#[derive(Debug)]
struct Family;

impl Descendants for Family {
    fn descendants(&self, of: &AnimaName) -> Vec<AnimaName> {
        let names: &[&str] = match of.as_str() {
            "parent" => &["child", "grandchild"],
            "child" => &["grandchild"],
            _ => &[],
        };
        names.iter().map(|name| AnimaName::new(name).unwrap()).collect()
    }
}

struct House {
    _temp: tempfile::TempDir,
    data: DataDir,
    outside: PathBuf,
}

fn house() -> House {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let data = DataDir::new(root.join("data"));
    for name in ["parent", "child", "grandchild", "peer"] {
        let own = data.root().join("animas").join(name);
        for place in ["activity_log", "state/plans", "state/pending", "knowledge", "run/tmp"] {
            fs_err::create_dir_all(own.join(place)).unwrap();
        }
        for file in
            ["identity.md", "cron.md", "status.json", "permissions.md", "knowledge/x.md", "state/current_state.md"]
        {
            fs_err::write(own.join(file), name).unwrap();
        }
    }
    for place in [
        "shared/common_knowledge",
        "shared/users",
        "shared/inbox/peer",
        "shared/inbox/parent",
        "common_knowledge",
        "company",
    ] {
        fs_err::create_dir_all(data.root().join(place)).unwrap();
    }
    let outside = root.join("outside");
    fs_err::create_dir_all(outside.join("closed")).unwrap();
    fs_err::write(outside.join("secret"), "s").unwrap();
    House { _temp: temp, data, outside }
}

impl House {
    fn of(&self, name: &str, permissions: &str) -> FileAccess {
        let (table, _) = parse(permissions, None).unwrap();
        FileAccess::new(self.data.anima(&AnimaName::new(name).unwrap()), Arc::new(table), Arc::new(Family))
    }
}

fn reason(files: &FileAccess, path: &str, want: Want) -> Option<Reason> {
    files.check(path, want).err().map(|refusal| refusal.reason)
}

#[test]
fn a_supervisor_sees_what_the_seed_says() {
    let house = house();
    let parent = house.of("parent", "");
    for path in [
        "animas/child/activity_log/2026-01-01.jsonl",
        "animas/grandchild/activity_log",
        "../grandchild/state/current_state.md",
        "animas/child/state/plans/p.md",
        "animas/child/identity.md",
        "animas/child",
    ] {
        assert_eq!(reason(&parent, path, Want::Read), None, "{path}");
    }
    assert_eq!(reason(&parent, "animas/grandchild/cron.md", Want::Write), None);
    assert_eq!(reason(&parent, "animas/child/status.json", Want::Write), None);
    for (path, want) in [
        ("animas/child/knowledge/x.md", Want::Read),
        ("animas/child/identity.md", Want::Write),
        ("animas/child/state/current_state.md", Want::Write),
        ("animas/child/permissions.md", Want::Read),
        ("animas/peer/cron.md", Want::Read),
        ("animas/child/../peer/identity.md", Want::Read),
    ] {
        assert!(reason(&parent, path, want).is_some(), "{path}");
    }
    let child = house.of("child", "");
    assert_eq!(reason(&child, "animas/parent/identity.md", Want::Read), Some(Reason::OtherAnima));
    assert_eq!(reason(&child, "animas/peer/activity_log", Want::Read), Some(Reason::OtherAnima));
}

#[test]
fn own_files_but_the_protected_ones() {
    let house = house();
    let own = house.of("parent", "");
    for path in ["notes.md", "knowledge/x.md", "cron.md", "run/tmp/a", "state/plans/p.md", "新しい/メモ.md"] {
        assert_eq!(reason(&own, path, Want::Write), None, "{path}");
    }
    for path in [
        "identity.md",
        "IDENTITY.MD",
        "./knowledge/../permissions.md",
        "permissions.json",
        "status.json",
        "activity_log/2026-01-01.jsonl",
        "run/min_trust_seen.s1",
        "index/memory.sqlite",
        "ｉdentity.md",
        ".",
    ] {
        assert_eq!(reason(&own, path, Want::Write), Some(Reason::Protected), "{path}");
        assert_eq!(reason(&own, path, Want::Read), None, "{path}");
    }
    fs_err::write(own.own().join("bootstrap.md"), "first day").unwrap();
    assert_eq!(reason(&own, "identity.md", Want::Write), None);
    assert_eq!(reason(&own, "bootstrap.md", Want::Write), Some(Reason::Protected));
}

#[test]
fn shared_places_and_keys() {
    let house = house();
    let own = house.of("parent", "");
    assert_eq!(reason(&own, "common_knowledge/guide.md", Want::Read), None);
    assert_eq!(reason(&own, "common_knowledge/guide.md", Want::Write), Some(Reason::ReadOnly));
    assert_eq!(reason(&own, "shared/common_knowledge/we.md", Want::Write), None);
    assert_eq!(reason(&own, "shared/users/tanaka/index.md", Want::Write), None);
    assert_eq!(reason(&own, "company/vision.md", Want::Write), Some(Reason::ReadOnly));
    assert_eq!(reason(&own, "shared/credentials.json", Want::Read), Some(Reason::Secret));
    assert_eq!(reason(&own, "../../auth.json", Want::Read), Some(Reason::Secret));
    assert_eq!(reason(&own, "../../config.json", Want::Read), Some(Reason::Secret));
    assert_eq!(reason(&own, "shared/vault.key", Want::Read), Some(Reason::Secret));
    assert_eq!(reason(&own, "shared/inbox/peer/1.json", Want::Read), Some(Reason::OtherAnima));
    assert_eq!(reason(&own, "shared/inbox/parent/1.json", Want::Read), None);
    assert_eq!(reason(&own, "../../run/server.pid", Want::Read), Some(Reason::Outside));
}

#[test]
fn roots_open_as_written_and_never_the_organisation() {
    let house = house();
    let outside = house.outside.display();
    let everything = house.outside.parent().unwrap().display().to_string();
    let text = format!(
        "## File Operations\n- {outside}: read and write\n- {outside}/closed: denied\n- {everything}: read only\n"
    );
    let files = house.of("parent", &text);
    assert_eq!(reason(&files, &format!("{outside}/new"), Want::Write), None);
    assert_eq!(reason(&files, &format!("{outside}/closed/a"), Want::Read), Some(Reason::Denied));
    assert_eq!(reason(&files, &format!("{everything}/other"), Want::Write), Some(Reason::ReadOnly));
    assert_eq!(reason(&files, "animas/peer/identity.md", Want::Read), Some(Reason::OtherAnima));
    let (read, write) = files.places();
    let peer = house.data.root().join("animas/peer");
    for place in read.iter().chain(&write) {
        assert!(!peer.starts_with(place) && !place.starts_with(&peer), "{}", place.display());
        assert!(!house.outside.join("closed").starts_with(place), "{}", place.display());
    }
    assert!(write.contains(&house.outside.join("secret")), "the parts around what is shut stay open");
}

#[test]
fn links_lead_where_they_lead() {
    let house = house();
    let own = house.of("parent", "");
    symlink(house.data.root().join("animas/peer"), own.own().join("friend")).unwrap();
    symlink(&house.outside, own.own().join("out")).unwrap();
    symlink("nowhere", own.own().join("dangling")).unwrap();
    symlink("knowledge", own.own().join("inside")).unwrap();
    symlink("identity.md", own.own().join("me.md")).unwrap();
    assert_eq!(reason(&own, "friend/identity.md", Want::Read), Some(Reason::OtherAnima));
    assert_eq!(reason(&own, "out/secret", Want::Read), Some(Reason::Outside));
    assert_eq!(reason(&own, "dangling", Want::Write), Some(Reason::BadPath));
    assert_eq!(reason(&own, "inside/x.md", Want::Write), None);
    assert_eq!(reason(&own, "me.md", Want::Write), Some(Reason::Protected));
    assert_eq!(reason(&own, "missing/../../peer/cron.md", Want::Read), Some(Reason::BadPath));
}

#[test]
fn a_broken_table_opens_nothing() {
    let house = house();
    let dir = house.data.anima(&AnimaName::new("parent").unwrap());
    let table = EffectiveTable::load(&dir, None);
    assert_eq!(table.broken.as_ref().unwrap().line, 1); // "parent" is no heading
    let files = FileAccess::new(dir, Arc::new(table), Arc::new(NoDescendants));
    assert_eq!(reason(&files, "knowledge/x.md", Want::Read), Some(Reason::Broken));
}

#[test]
fn the_organisation_is_read_as_it_is_now() {
    let house = house();
    let name = |name: &str| AnimaName::new(name).unwrap();
    let put = |anima: &str, supervisor: &str| {
        let status = format!(r#"{{"supervisor":"{supervisor}"}}"#);
        fs_err::write(house.data.anima(&name(anima)).status(), status).unwrap();
    };
    for anima in ["parent", "peer"] {
        fs_err::write(house.data.anima(&name(anima)).status(), "{}").unwrap();
    }
    put("child", "parent");
    put("grandchild", "child");
    let org = OrganisationFiles(house.data.clone());
    assert_eq!(org.descendants(&name("parent")), [name("child"), name("grandchild")]);
    put("grandchild", "peer");
    assert_eq!(org.descendants(&name("parent")), [name("child")]);
}
