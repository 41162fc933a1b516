//! Keys of any configuration: equal for what means the same, and for nothing else.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection, prelude::*};
use steadfast_pool::{ConfigFile, Key};

/// What a field means, however it is written.
#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    Text(String),
    Number(u32),
    List(Vec<String>),
    Set(BTreeSet<String>),
    Map(BTreeMap<String, String>),
    /// As `Map`, but the case of its names has no meaning.
    Headers(BTreeMap<String, String>),
    Object(Fields),
}

type Fields = Vec<(&'static str, Meaning)>;

/// Chooses among ways to write, or to change, one meaning.
struct Dice(u64);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_meanings_have_equal_keys(fields in server(), one: u64, other: u64) {
        let (one, other) = (write(&fields, &mut Dice(one)), write(&fields, &mut Dice(other)));

        prop_assert_eq!(key(&one), key(&other), "{} and {}", one, other);
    }

    #[test]
    fn any_change_of_one_field_changes_the_key(fields in server(), style: u64, change: u64) {
        let mut changed = fields.clone();
        change_one(&mut changed, &mut Dice(change));
        prop_assume!(changed != fields);

        let (one, other) = (write(&fields, &mut Dice(style)), write(&changed, &mut Dice(style)));
        prop_assert_ne!(key(&one), key(&other), "{} and {}", one, other);
    }
}

fn server() -> impl Strategy<Value = Fields> {
    let text = || "[ -z]{0,3}";
    let texts = || collection::vec(text(), 0..4);
    let set = || collection::btree_set(text(), 0..4);
    let stdio = (
        text(),
        texts(),
        collection::btree_map("[A-Za-z_]{1,2}", text(), 0..4),
        text(),
    );
    let stdio = stdio.prop_map(|(command, args, env, cwd)| {
        vec![
            ("command", Meaning::Text(format!("c{command}"))),
            ("args", Meaning::List(args)),
            ("env", Meaning::Map(env)),
            ("cwd", Meaning::Text(cwd)),
        ]
    });
    let headers = collection::btree_map("[a-z]{1,2}", text(), 0..4);
    let oauth = (collection::vec(text(), 7), set(), set());
    let http = ("[a-z]{0,2}", headers, oauth).prop_map(|(path, headers, oauth)| {
        vec![
            ("url", Meaning::Text(format!("http://h/{path}"))),
            ("headers", Meaning::Headers(headers)),
            ("oauth", Meaning::Object(oauth_fields(oauth))),
        ]
    });
    let common = (0..3_u32, text(), text(), text());
    (prop_oneof![stdio, http], common).prop_map(|(mut fields, common)| {
        let (timeout, provider, audience, account) = common;
        fields.push(("timeout", Meaning::Number(timeout)));
        fields.push(("authProviderType", Meaning::Text(provider)));
        fields.push(("targetAudience", Meaning::Text(audience)));
        fields.push(("targetServiceAccount", Meaning::Text(account)));
        fields
    })
}

fn oauth_fields(
    (texts, scopes, audiences): (Vec<String>, BTreeSet<String>, BTreeSet<String>),
) -> Fields {
    let names = [
        "clientId",
        "clientSecret",
        "authorizationUrl",
        "tokenUrl",
        "redirectUri",
        "tokenParamName",
        "registrationUrl",
    ];
    let texts = texts.into_iter().map(Meaning::Text);
    let mut fields: Fields = names.into_iter().zip(texts).collect();
    fields.push(("scopes", Meaning::Set(scopes)));
    fields.push(("audiences", Meaning::Set(audiences)));
    fields
}

/// Writes the fields as JSON, in one of the many ways that mean the same.
fn write(fields: &Fields, dice: &mut Dice) -> String {
    let mut written = Vec::new();
    for (name, meaning) in fields {
        let empty = meaning.is_empty();
        match dice.roll(3) {
            0 if empty => {}
            1 if empty => written.push(format!("\"{name}\": null")),
            // A timeout of nothing cannot be written as a number.
            _ if *meaning == Meaning::Number(0) => {}
            _ => written.push(format!("\"{name}\": {}", meaning.write(dice))),
        }
    }
    dice.shuffle(&mut written);
    format!("{{{}}}", written.join(", "))
}

/// Changes the meaning of one field, so little that a sloppy digest would not see it.
fn change_one(fields: &mut Fields, dice: &mut Dice) {
    let index = dice.roll(fields.len());
    match &mut fields[index].1 {
        Meaning::Text(text) => text.push('x'),
        Meaning::Number(number) => *number += 1,
        Meaning::Set(set) => drop(set.insert("new".to_owned())),
        Meaning::List(list) => change_list(list, dice),
        Meaning::Map(map) | Meaning::Headers(map) => change_map(map, dice),
        Meaning::Object(fields) => change_one(fields, dice),
    }
}

fn change_list(list: &mut Vec<String>, dice: &mut Dice) {
    match dice.roll(4) {
        0 => list.reverse(),
        1 => drop(list.pop()),
        // Moves one character over the border of two items.
        2 if list.len() > 1 => {
            let moved = list[0].pop();
            list[1].insert_str(0, &moved.map(String::from).unwrap_or_default());
        }
        _ => list.push(String::new()),
    }
}

fn change_map(map: &mut BTreeMap<String, String>, dice: &mut Dice) {
    let Some((name, value)) = map.pop_first() else {
        map.insert("new".to_owned(), String::new());
        return;
    };
    match dice.roll(4) {
        0 => {}
        1 => drop(map.insert(name + "x", value)),
        2 => drop(map.insert(name, value + "x")),
        // Moves one character over the border of name and value.
        _ if value.starts_with(|first: char| first.is_ascii_lowercase()) => {
            map.insert(format!("{name}{}", &value[..1]), value[1..].to_owned());
        }
        _ => drop(map.insert(name + "new", value)),
    }
}

fn key(entry: &str) -> Key {
    let file = ConfigFile::parse(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#));
    assert!(file.errors().is_empty(), "{entry}: {:?}", file.errors());
    Key::new(&file.servers()[0], None)
}

// === impl Meaning ===

impl Meaning {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Number(number) => *number == 0,
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::Map(map) | Self::Headers(map) => map.is_empty(),
            Self::Object(fields) => fields.iter().all(|(_, meaning)| meaning.is_empty()),
        }
    }

    fn write(&self, dice: &mut Dice) -> String {
        match self {
            Self::Text(text) => json(text),
            Self::Number(number) => number.to_string(),
            Self::List(list) => array(&list.iter().map(|text| json(text)).collect::<Vec<_>>()),
            Self::Set(set) => {
                let mut items: Vec<_> = set.iter().map(|text| json(text)).collect();
                items.extend(items.first().filter(|_| dice.roll(2) == 0).cloned());
                dice.shuffle(&mut items);
                array(&items)
            }
            Self::Map(map) => object(map.iter().map(|(name, value)| (name.clone(), value)), dice),
            Self::Headers(map) => {
                let loud = dice.roll(2) == 0;
                let name = |name: &String| {
                    if loud {
                        name.to_ascii_uppercase()
                    } else {
                        name.clone()
                    }
                };
                object(
                    map.iter().map(|(header, value)| (name(header), value)),
                    dice,
                )
            }
            Self::Object(fields) => write(fields, dice),
        }
    }
}

fn object<'a>(entries: impl Iterator<Item = (String, &'a String)>, dice: &mut Dice) -> String {
    let mut entries: Vec<_> = entries
        .map(|(name, value)| format!("{}: {}", json(&name), json(value)))
        .collect();
    dice.shuffle(&mut entries);
    format!("{{{}}}", entries.join(", "))
}

fn array(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

// === impl Dice ===

impl Dice {
    /// A number below `sides` (SplitMix64).
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % sides
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.roll(last + 1));
        }
    }
}
