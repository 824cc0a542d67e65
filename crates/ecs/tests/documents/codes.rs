//! `codes.txt`: action, status and code of documented errors, and what a caller must conclude from the text of the
//! document. The conclusions are named as in [`ecs::Kind::as_str`].

use ecs::Error;
use ecs::client::ACTIONS;

#[test]
fn every_documented_code_has_the_documented_consequence() {
    let mut codes = 0;
    let mut wrong = Vec::new();
    let lines = include_str!("codes.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [action, status, code, expected] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let action = ACTIONS.iter().find(|known| **known == action).expect(line);
        let error = Error::from_response(action, status.parse().expect(line), code);
        if error.kind().as_str() != expected {
            wrong.push(format!("{line}, but is {}", error.kind().as_str()));
        }
        codes += 1;
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(codes >= 150, "{codes} codes");
}
