"""A small simulated agent for the page on rewards: it learns how many searches to make, by policy gradient."""

import math
import random

import goodgain as gg
from goodgain.analysis.reporting.plots import canvas

MOST_SEARCHES = 6
GOOD = [f"good{number}" for number in range(8)]
QRELS = {"q": dict.fromkeys(GOOD, 2)}
#: Name -> the reward from the values of a rollout and its number of searches.
REWARDS = {
    "1 - SRR": lambda values, searches: 1 - values["SRR"],
    "RG": lambda values, searches: values["RG"],
    "nCG": lambda values, searches: values["nCG"],
    "nCG minus .05 a search": lambda values, searches: values["nCG"] - 0.05 * searches,
}


def search(number, dice):
    """Return ten documents: later searches find fewer good ones, and repeat more."""
    found = [doc_id for doc_id in GOOD if dice.random() < 0.5 / (1 + 0.3 * number)]
    return found + [f"other{dice.randrange(30)}" for _ in range(10 - len(found))]


def learn(reward, rollouts=3000, step=0.15, seed=1):
    """Return the expected number of searches after every 50 rollouts, and the mean nCG of the last 500 rollouts."""
    dice = random.Random(seed)
    scorer = gg.Scorer(QRELS, "nCG RG SRR")
    preferences = [0.0] * (MOST_SEARCHES + 1)
    usual, expected, found = 0.0, [], []
    for number in range(rollouts):
        weights = [math.exp(preference) for preference in preferences]
        chances = [weight / sum(weights) for weight in weights]
        searches = dice.choices(range(MOST_SEARCHES + 1), chances)[0]

        values = scorer.score("q", [search(place, dice) for place in range(searches)])
        given = reward(values, searches)
        usual += 0.02 * (given - usual)
        for choice, chance in enumerate(chances):
            preferences[choice] += step * (given - usual) * ((choice == searches) - chance)

        found.append(values["nCG"])
        if number % 50 == 0:
            expected.append(sum(choice * chance for choice, chance in enumerate(chances)))
    return expected, sum(found[-500:]) / 500


def draw_searches():
    """Draw the expected number of searches over the rollouts, a line per reward."""
    ax, _ = canvas.open_ax(None)
    ends = []
    for number, (name, reward) in enumerate(REWARDS.items()):
        searches, _ = learn(reward)
        rollouts = range(0, 50 * len(searches), 50)
        style = canvas.style_of(number)
        ax.plot(rollouts, searches, markevery=10, **style)
        ends.append((name, style["color"], rollouts[-1], searches[-1]))

    ax.set_xlabel("rollouts")
    ax.set_ylabel("expected searches per query")
    canvas.name_ends(ax, ends)
    canvas.add_title(ax, "Searches that the agent learns to make, by reward")
    return ax
