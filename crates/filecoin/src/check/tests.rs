use super::*;
use crate::support::fixtures;

#[test]
fn accepts_every_fixture() {
    for fixture in fixtures::all() {
        for request in fixture.requests() {
            let report =
                check(&request, &()).unwrap_or_else(|error| panic!("{}: {error}", fixture.name));
            println!("{} {report:?}", fixture.name);
        }
    }
}
