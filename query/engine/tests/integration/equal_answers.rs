//! The engine, `DuckDB` and Spark give equal answers to the same queries of the same store, including the queries in `docs/query.md`.

use tracepoint_query_tests::{assert_equal, queries, stores};

use crate::answers::{ask, open};
use crate::readers;

const PAGE: &str = include_str!("../../../../docs/query.md");

fn words(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn all_engines_answer_alike() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let queries = queries("datafusion");
    assert!(queries.len() >= 20, "{queries:?}");
    let engine = open(&store).await;
    let mut answers = Vec::new();
    for query in &queries {
        answers.push(ask(&engine, &query.sql).await.unwrap_or_else(|error| panic!("{}: {error}", query.name)));
    }
    for (name, others) in [("DuckDB", readers::duckdb(&store)), ("Spark", readers::spark(&store, place.path()))] {
        let Some(others) = others else { continue };
        assert_eq!(others.len(), queries.len());
        println!("the same by {name}");
        for ((query, answer), other) in queries.iter().zip(&answers).zip(others) {
            assert_equal(query, other, answer.clone());
        }
    }
}

#[test]
fn the_recipes_of_the_book_are_among_them() {
    let known: Vec<_> = queries("datafusion").iter().map(|query| words(&query.sql)).collect();
    let recipes: Vec<_> = PAGE.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(recipes.len() >= 10);
    for recipe in recipes {
        assert!(known.contains(&words(recipe)), "add this to query/tests/queries/: {recipe}");
    }
}
