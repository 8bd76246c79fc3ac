import Testing

@testable import CorePostgres

@Suite("Scripts taken apart")
struct SQLScriptTests {
    @Test("statements end at semicolons, but not at those within strings, names, comments and functions")
    func statements() {
        let text = """
            -- first; comment
            SELECT 'a;b', E'it\\'s;', "na;me" /* x; /* y; */ z; */;

            CREATE FUNCTION f() RETURNS text LANGUAGE sql AS $$ SELECT ';$1'; $$;
            CREATE FUNCTION g() RETURNS text LANGUAGE sql AS $body$ SELECT $$;$$; $body$ ;
            SELECT $1;SELECT a$b;
            ;;
            SELECT 'end''s;'
            """
        let statements = SQLScript.statements(text, firstLine: 10)
        #expect(statements.map(\.line) == [11, 13, 14, 15, 15, 17])
        #expect(
            statements.map { $0.text.prefix(20).description } == [
                "SELECT 'a;b', E'it\\'", "CREATE FUNCTION f() ", "CREATE FUNCTION g() ", "SELECT $1", "SELECT a$b",
                "SELECT 'end''s;'",
            ])
    }

    @Test("nothing but comments is no statement, and what has no end is one")
    func edges() {
        #expect(SQLScript.statements("-- only\n/* this */ ; \n") == [])
        #expect(SQLScript.statements("SELECT 'open; SELECT 2;").count == 1)
        #expect(SQLScript.statements("SELECT $$open; SELECT 2;").count == 1)
        #expect(SQLScript.statements("/* open; SELECT 2;") == [])
        #expect(SQLScript.statements("SELECT 1; /* open").count == 1)
    }
}
