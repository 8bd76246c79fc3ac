"""What is asked of a million postings: a mix of searches in the words of the postings, the same for the same seed."""

import itertools
import random
import re
import subprocess
from dataclasses import dataclass
from urllib.parse import urlencode

from search_data import SearchData

# Of the postings that have a word.
COMMON, MIDDLING = 0.03, 0.002
TRIES_MAX = 50  # To find a question that was not yet asked.
# Whole words, and none that search_normalise reads together with its neighbour: front end, e-mail, Node.js, level A.
WORD = re.compile(r"(?<![\w'’&.+#/@-])[A-Za-z]{3,14}(?![\w'’&+#/@-]|\.\w| [A-Za-z]\b)")
TOGETHER = set("front back end full stack dev ops dot net objective sharp plus node react vue angular next".split())
KINDS = ("full_time", "part_time", "contract", "internship", "temporary", "other")
# How often each is asked, of a hundred.
MIX = {
    "common word": 15, "middling word": 10, "rare word": 10, "two words": 15, "three words": 8, "phrase": 8, "OR": 6,
    "negation": 6, "no words": 7, "place": 5, "radius": 5, "second page": 5,
}


@dataclass
class Question:
    sort: str
    items: dict[str, str]
    must_find: bool  # Not only likely to have hits.
    found: int = 0  # As it was answered last.

    def path(self, endpoint: str) -> str:
        return f"/api/jobs/{endpoint}?{urlencode(self.items)}"


class Questions:
    """Words with how many postings have them, and sentences to take what stands together from."""

    def __init__(self, data: SearchData):
        self.data = data
        sentences = [sentence for document in data.documents for sentence in document.sentences]
        found = {word.lower() for sentence in sentences for word in WORD.findall(sentence)}
        self.frequency = self.frequencies(sorted(found - TOGETHER))
        self.words = [
            sorted({word.lower() for word in WORD.findall(sentence)} & self.frequency.keys()) for sentence in sentences
        ]
        self.phrases = [phrase for sentence in sentences for phrase in self.side_by_side(sentence)]
        bands: dict[str, list[str]] = {"common": [], "middling": [], "rare": []}
        for word, count in self.frequency.items():
            part = count / data.postings
            bands["common" if part >= COMMON else "middling" if part >= MIDDLING else "rare"].append(word)
        # Where there is only the small sample of the repository, none of its words is rare.
        bands["rare"] = bands["rare"] or sorted(self.frequency, key=lambda word: self.frequency[word])[:100]
        self.bands = bands

    def frequencies(self, words: list[str]) -> dict[str, int]:
        """By the product's own facts; words that search leaves out are not among them."""
        script = (
            "CREATE TEMP TABLE asked (word text);\nCOPY asked FROM STDIN;\n" + "\n".join(words) + "\n\\.\n"
            "SELECT a.word, t.df FROM (SELECT word, tsvector_to_array(search_vector(word)) AS lexemes FROM asked) a "
            "JOIN search_terms t ON t.lexeme = a.lexemes[1] WHERE cardinality(a.lexemes) = 1 ORDER BY a.word;\n"
        )
        command = ["psql", "-X", "-q", "-A", "-t", "-F", " ", "-v", "ON_ERROR_STOP=1", self.data.stand.database_url]
        said = subprocess.run(command, input=script, text=True, check=True, capture_output=True).stdout
        return {word: int(count) for word, count in map(str.split, said.splitlines())}

    def made(self, count: int, seed: int, sorts: dict[str, int]) -> tuple[list[Question], int]:
        """The questions in the order in which they are asked, and how many are asked again."""
        rng = random.Random(seed)
        chosen = rng.choices(list(sorts), list(sorts.values()), k=count)
        seen: set[str] = set()
        questions, again = [], 0
        for sort in chosen:
            for tried in itertools.count():
                question = self.one(sort, rng)
                path = question.path("search")
                if path not in seen or tried == TRIES_MAX:
                    break
            again += path in seen
            seen.add(path)
            questions.append(question)
        return questions, again

    def one(self, sort: str, rng: random.Random) -> Question:
        word = {band: rng.choice(words) for band, words in self.bands.items()}
        filters = self.filters(rng)
        match sort:
            case "common word":
                return Question(sort, {"q": word["common"], **filters}, len(filters) < 2)
            case "middling word" | "rare word":
                return Question(sort, {"q": word[sort.removesuffix(" word")], **filters}, not filters)
            case "two words" | "three words":
                words = self.together(rng, 2 if sort == "two words" else 3)
                return Question(sort, {"q": words, **filters}, not filters)
            case "phrase":
                return Question(sort, {"q": f'"{self.phrase(rng)}"', **filters}, not filters)
            case "OR":
                return Question(sort, {"q": f"{word['middling']} OR {word['common']}", **filters}, len(filters) < 2)
            case "negation":
                # A rare word leaves most of those of a common one.
                less = rng.choice((word["middling"], word["rare"]))
                return Question(sort, {"q": f"{word['common']} -{less}", **filters}, not filters)
            case "no words":
                return Question(sort, filters or {"salary": str(rng.randrange(20, 130) * 1000)}, len(filters) < 2)
            case "place":
                name = rng.choice(self.data.cities)[0].split(",")[0]
                return Question(sort, {"q": word["common"], "place": name, **filters}, False)
            case "radius":
                _, lat, lng = rng.choice(self.data.cities)
                near = {"lat": f"{lat + rng.uniform(-0.3, 0.3):.2f}", "lng": f"{lng + rng.uniform(-0.3, 0.3):.2f}"}
                words = rng.choice(({"q": word["common"]}, {"q": word["middling"]}, {}))
                return Question(sort, {**words, **near, "radius": str(rng.randrange(10, 200)), **filters}, False)
            case _:
                # With enough hits for another page; the cursor comes with the first one's answer.
                return Question("second page", {"q": word[rng.choice(("common", "middling"))]}, True)

    def filters(self, rng: random.Random) -> dict[str, str]:
        """None for half of the questions, one or two for the others."""
        every = {
            "type": rng.choice(KINDS), "remote": rng.choice(("true", "hybrid", "false")),
            "salary": str(rng.randrange(6, 26) * 5000),
        }
        names = rng.sample(sorted(every), rng.choice((0, 0, 1, 2)))
        return {name: every[name] for name in names}

    def together(self, rng: random.Random, count: int) -> str:
        """Words of one sentence, so there are postings that have them all."""
        while True:
            words = self.words[rng.randrange(len(self.words))]
            if len(words) >= count:
                return " ".join(rng.sample(words, count))

    def phrase(self, rng: random.Random) -> str:
        """Two words that stand side by side in a sentence."""
        return rng.choice(self.phrases)

    def side_by_side(self, sentence: str) -> list[str]:
        words = [match for match in WORD.finditer(sentence) if match[0].lower() in self.frequency]
        return [
            f"{first[0]} {second[0]}" for first, second in itertools.pairwise(words)
            if sentence[first.end():second.start()] == " "
        ]
