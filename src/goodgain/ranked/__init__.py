"""Measures over one ranking, from the ranking table: nDCG, P, R, AP and others with the values of ir_measures."""

from goodgain.ranked.ranked import RANKED_MEASURES, takes
from goodgain.ranked.ranking_table import Judgments, RankingTable, number_judgments, tabulate_ranking
from goodgain.ranked.scoring import RankedPlan, aggregate_values, plan_measures, score_ranking

__all__ = [
    "RANKED_MEASURES",
    "Judgments",
    "RankedPlan",
    "RankingTable",
    "aggregate_values",
    "number_judgments",
    "plan_measures",
    "score_ranking",
    "tabulate_ranking",
    "takes",
]
