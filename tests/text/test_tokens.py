"""The tokens of texts and queries."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimo.text.families import kinds, may_have_nouns, nouns
from mimo.text.tokens import excerpt, identifiers, is_chore, matching_words, query_terms, tokenize

SPELLINGS = tomllib.loads(Path(__file__).with_name("spellings.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Running the tests", ["run", "the", "test"]),
        ("HTTPServer getUserName", ["http", "server", "httpserver", "get", "user", "name"]),
        ("GitHub's a-z b--c", ["git", "hub", "s", "github", "a", "z", "b", "c"]),
        ("the rate-limits.", ["the", "rate", "limit", "ratelimit"]),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("5 € for ✅✅, §12", ["5", "€", "for", "✅", "✅", "§", "12"]),
        ("👩🏽\u200d💻 🤷\u200d♀️ ♀ 🇩🇪 ❤️", ["👩", "💻", "🤷", "♀", "🇩🇪", "❤"]),
        ("a → b • ≤ 5° │ ❯ ±1", ["a", "b", "5", "1"]),
        ("max_retry_count __init__", ["max", "retri", "count", "init"]),
        ("sha256 S3 7th", ["sha", "256", "s", "3", "7", "th"]),
        ("two URLs, three APIs", ["two", "url", "three", "api"]),
        ("naïve Ärger \uff21\uff22\uff23", ["naiv", "arger", "abc"]),
        ("検索エンジン", ["検索", "索エ", "エン", "ンジ", "ジン"]),
        ("犬", ["犬"]),
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("日本語のtext", ["日本", "本语", "语の", "text"]),
        ("שָׁלוֹם", ["שלום"]),
        ("캐시를", ["캐시", "시를"]),  # Particles are kept in texts.
        # No word is cut at its vowel signs.
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ที่นี่", ["ที", "ี่", "่น", "นี", "ี่"]),
        ("- ... !?", []),
        ("", []),
    ],
)
def test_text_becomes_words(text, tokens):
    assert tokenize(text) == tokens


@pytest.mark.parametrize("ascii_only", [True, False])
def test_other_scripts_beside_a_text_do_not_change_its_tokens(ascii_only):
    text = "parse_JSON of user_id 42's reply" + ("" if ascii_only else " — žluť")

    assert tokenize(text)[:8] == ["pars", "json", "of", "user", "id", "42", "s", "repli"]


@given(st.text())
def test_a_token_holds_no_space_and_no_upper_case_ascii(text):
    for token in tokenize(text):
        assert token
        assert token.split() == [token]
        assert not any(c.isascii() and not (c.islower() or c.isdigit()) for c in token)


@given(st.text(alphabet="ab_ 1Aé日の-"), st.text(alphabet="ab_ 1Aé日の-"))
def test_texts_on_two_lines_have_the_tokens_of_both(item, other):
    assert tokenize(f"{item}\n{other}") == tokenize(item) + tokenize(other)


def test_a_query_has_distinct_terms_in_its_own_order():
    terms = query_terms("Which socket key does the socket of the gateway use?")

    assert terms.full == ("which", "socket", "kei", "doe", "gatewai", "us")
    assert terms.content == ("socket", "kei", "gatewai")


@pytest.mark.parametrize(
    "spellings",
    [
        "Straße STRASSE Strasse straße STRA\u1e9eE",
        "Schließen schliessen SCHLIESSEN",
        "Größe Grösse GRÖSSE Gro\u0308ße grosse",
        "\u0131\u015f\u0131k I\u015eIK isik",
        "\u0130stanbul istanbul ISTANBUL",
        "\u0141\u00f3d\u017a \u0142\u00f3d\u017a lodz",
        "\u00d8resund \u00f8resund oresund",
        "\u0110\u01b0\u1eddng \u0111\u01b0\u1eddng duong",
        "ΟΔΟΣ οδος οδοσ",
    ],
)
def test_spellings_of_a_word_share_a_token(spellings):
    assert len(set(tokenize(spellings))) == 1
    assert len(query_terms(f"gateway {spellings}").full) == 2


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("what did we decide about auth?", ("authent",)),
        ("which server did you choose?", ("server",)),
        ("why should I use JWT?", ("jwt",)),
        ("explain how to find something about invoices", ("invoic",)),
        ("What's wrong, and why don’t the tests pass?", ("wrong", "test", "pass")),
        ("data mining of mine", ("data", "mine")),  # They are dropped before stemming.
        ("how to log in", ("login",)),
        ("?!", ()),
    ],
)
def test_words_of_asking_and_deciding_are_no_content(question, content):
    assert query_terms(question).content == content


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("what was the decision?", ("decid",)),
        ("what happened?", ("happen",)),
        ("what do you need", ("need",)),
        ("who are you", ("who", "you")),
        ("to be or not", ("to", "be", "or", "not")),
        ("what's", ("what", "s")),
        ("왜 그렇게 했지", ("왜", "그렇", "렇게", "했지")),
        ("wie ist das", ("wie", "ist", "da")),
    ],
)
def test_words_of_asking_and_deciding_are_content_if_nothing_else_is(question, content):
    assert query_terms(question).content == content


@pytest.mark.parametrize(
    "family",
    [
        ["log in", "logging in", "Logged in", "login", "log-in", "log the customers in"],
        ["set up", "sets up", "setup", "set it up", "setting the server up"],
        ["sign up", "signing up", "signup"],
        ["back up", "backed up", "backup", "backups", "back our database up"],
        ["roll back", "rolled back", "rollback", "roll the release back"],
        ["check out", "checkout"],
        ["timed out", "timeouts", "time out"],
        ["take over", "took over", "takeover"],
    ],
)
def test_a_verb_with_a_particle_is_in_the_family_of_its_noun(family):
    (noun,) = tokenize(min(family, key=len).replace(" ", ""))

    for words in family:
        assert noun in tokenize(words)
        assert noun in query_terms(words).content


@pytest.mark.parametrize(
    "family",
    [
        ["deploy", "deploys", "deployed", "deployment"],
        ["pay", "paid", "payments"],
        ["decide", "decided", "decision"],
        ["send", "sent", "sending"],
        ["configuration", "configure", "config", "configs"],
        ["db", "databases"],
        ["organise", "organizing", "organisation"],
        ["postgres", "postgresql"],
        ["slow", "slower", "slowly"],
    ],
)
def test_the_words_of_a_family_have_one_token(family):
    assert len({token for word in family for token in tokenize(word)}) == 1


def holds(text: str, query: str) -> bool:
    """Returns whether a text holds all words of a query, as ranking reads them."""
    terms, tokens = query_terms(query), set(tokenize(text))
    spelled = {part for solid, parts in terms.spellings if solid in tokens for part in parts}
    return tokens | spelled >= {*terms.content}


@pytest.mark.parametrize(("query", "text"), SPELLINGS["same"])
def test_a_text_with_another_spelling_holds_the_query(query, text):
    assert query_terms(query).content
    assert holds(text, query)
    assert matching_words(text, query)


@pytest.mark.parametrize(("query", "text"), SPELLINGS["other"])
def test_a_text_with_another_word_does_not_hold_the_query(query, text):
    assert not query_terms(query).content or not holds(text, query)


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("precommit e-mail", "A pre-commit hook sends emails", ["pre-commit", "emails"]),
        ("sqlite", "SQLite, or (SQLite3)", ["SQLite", "SQLite3"]),
        ("SQLite", "sqlite", ["sqlite"]),
        ("数据库", "這個數據庫", ["數據", "據庫"]),
        ("✅ 🚀", "✅ and 🚀🚀", ["✅", "🚀"]),
        ("login", "log-in", ["log-in"]),
        ("redis", "레디스에 저장", ["레디스에"]),
        ("레디스", "레디스에 Redis", ["레디", "디스", "Redis"]),
    ],
)
def test_the_words_of_a_text_that_match_are_as_it_writes_them(query, text, words):
    assert sorted(matching_words(text, query)) == sorted(words)


def test_an_excerpt_begins_where_a_compound_matches():
    text = f"{'filler ' * 60}\nthe pre-commit hook\n{'filler ' * 60}"

    assert excerpt(text, "precommit", 40).startswith("… the pre-commit hook")


def test_an_excerpt_of_few_lines_has_the_line_that_matches():
    text = "- Status: accepted\n- Date: 2024-08-01\n\nWhich provider takes cards?\n\nStripe."

    assert excerpt(text, "payment provider", 240, 4).startswith("… Which provider")
    assert excerpt(text, "payment provider", 240) == text


def test_the_parts_of_a_compound_stay_neighbours():
    assert tokenize_text("src/sendMail.py") == "src send mail py sendmail"
    assert identifiers("src/sendMail.py")[0] in tokenize_text("lib/src/sendMail.py")
    assert identifiers("send_mail.py") == ("send mail py",)


def tokenize_text(text: str) -> str:
    return " ".join(tokenize(text))


@pytest.mark.parametrize(
    "text",
    [
        "Production logs in S3 are kept",
        "write the log in JSON",
        "log an error in the console",
        "Check the log.\nIn production it rotates",
        "check the log, in case",
    ],
)
def test_a_noun_before_a_place_is_no_verb(text):
    assert "login" not in tokenize(text)
    assert "log" in query_terms(text).content


@given(
    st.lists(
        st.sampled_from(
            "log,logs,set,back,take,over,in,up,out,the,a,it,me,dogs,x.,and,(in),in-memory,log-in,"
            "Set-up,re-log,-,--,\n,\t,  ".split(",")
        ),
        max_size=9,
    )
)
def test_a_text_that_may_not_have_verbs_with_particles_has_none(words):
    text = " ".join(words)

    assert may_have_nouns(kinds(text.split())) or nouns(text, beside=True) == text


@pytest.mark.parametrize("word", ["rise", "promise", "wise", "exercise", "my", "by", "is"])
def test_other_words_keep_their_stems(word):
    from Stemmer import Stemmer

    assert tokenize(word) == [Stemmer("porter").stemWord(word)]


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("캐시를 왜 바꿨지", ("캐시", "바꿨", "꿨지")),
        ("서버에서는 무엇을 쓰나요?", ("서버",)),
        ("결제 API 는 어떻게 하기로 했어", ("결제", "api")),
        ("키는 어디에", ("키는",)),  # One syllable and a particle may be a word.
    ],
)
def test_korean_question_words_and_particles_are_no_content(question, content):
    assert query_terms(question).content == content


# Words that are not English follow (codespell:ignore-begin).
@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("Wie mache ich ein Release?", ("releas",)),
        ("Wo ist die staging Datenbank?", ("stage", "datenbank")),
        ("Wer betreut billing?", ("betreut", "bill")),
        ("Où est le cache du build ?", ("cach", "build")),
        ("Qui est responsable de l'API ?", ("respons", "api")),
        ("¿Por qué no hay backups en staging?", ("backup", "stage")),
        ("Onde estão os logs do servidor?", ("log", "servidor")),
        ("Dobbiamo mettere i limits in un service?", ("metter", "limit", "servic")),
        ("Waar zijn de secrets van de API?", ("secret", "api")),
        ("Jak zrobić release?", ("releas",)),
        ("gdzie by\u0142y nasze backupy?", ("backupi",)),
        ("Wie läuft die CI mit DES?", ("lauft", "ci", "de")),  # Names in capitals are none.
        ("Где находятся логи и какой у них формат?", ("находятся", "логи", "формат")),
    ],
)
# English again (codespell:ignore-end).
def test_function_words_of_other_languages_are_no_content(question, content):
    assert query_terms(question).content == content


@pytest.mark.parametrize(
    "question",
    [
        "die on error",
        "comment in the code",
        "son of a process",
        "no art in the war room",
        "run a non test io job",
        "what does du do",
        "Jest to test the page",
    ],
)
def test_english_words_that_other_languages_have_are_content(question):
    english = set("on in the of a no to what does do".split())

    assert query_terms(question).content == tuple(
        dict.fromkeys(
            token
            for word in question.lower().split()
            if word not in english
            for token in tokenize(word)
        )
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mail_postmark", ("mail postmark",)),
        ("why is `acks_late` on, and MAX_SIZE?", ("ack late", "max size")),
        ("getUserName fails in src/send.py.", ("get user name", "src send py", "send py")),
        ("~/.config/app-2/a_b, read/write", ("configur app 2 a b", "a b")),
        ("a/" * 30_000, ()),
        ("std::move and api.get", ("std move", "api get")),
        ("pinned to v1.2.3", ("v 1 2 3",)),
        ("PostgreSQL, GitHub, iPhone, macOS and Node.js", ()),
        ("e.g. this.And U.S. law, 127.0.0.1, __init__ and _x", ()),
    ],
)
def test_the_identifiers_of_a_query(text, names):
    assert identifiers(text) == names


@pytest.mark.parametrize(
    ("text", "chore"),
    [
        ("the label of the total is cut off, fix the constraint", True),
        ("label each pod with its team", False),
        ("a workflow which labels incoming changes", False),
        ("add a short description to each variable", True),
        ("upgrade the client to the latest release", True),
        ("store the latest price", False),
        ("page through all results", False),
    ],
)
def test_a_chore_rarely_changes_behaviour(text, chore):
    assert is_chore(text) is chore
