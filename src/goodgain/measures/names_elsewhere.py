"""Names of measures in other tools and in the good-gain guideline: what is written for them here.

Also suggests a name for a misspelt one.
"""

import difflib
import re
from collections.abc import Mapping

import ir_measures

from goodgain.errors import MeasureError

#: Names in other tools, in lower case, that mean exactly a measure here, and are read as this measure. ranx' `hits` is not one:
#: it is a count.
READ_AS = {"hit": "Success", "hitrate": "Success", "hit_rate": "Success", "f1": "F", "f2": "F(beta=2)"}

#: A cutoff as trec_eval (P_5, P.5) and MTEB (precision_at_5) write it; then also P@5.
_CUT = r"(?:_at_|_|\.)(?P<k>\d+)"
_AT = r"(?:@|_at_|_|\.)(?P<k>\d+)"
#: The number of one iteration, as the guideline writes it: G_i, UR^i.
_OF_ONE = r"(?:_|\^)?(?P<k>\d+)?"

#: Names in other tools and in the guideline (in any case) -> the measure here; `k` is the number in the name.
_ELSEWHERE = {
    rf"hits{_AT}": "P@{k} (hits are {k} times P@{k})",
    rf"(?:hit|hit_?rate|success|accuracy){_CUT}": "Success@{k}",
    rf"top_?k?_?accuracy{_AT}": "Success@{k}",
    rf"acc{_AT}": "Success@{k} if it is the share of queries with a hit, Accuracy@{k} if it is that of pairs in order",
    r"(?:roc_?)?auc": "Accuracy",
    rf"f1{_CUT}": "F@{k}",
    rf"f2{_CUT}": "F(beta=2)@{k}",
    r"f1|f1?[-_]?(?:score|measure)": "F@k, or SetF for the whole ranking",
    r"f2": "F(beta=2)@k, or SetF(beta=4) for the whole ranking",
    r"recip_?rank": "RR",
    rf"m?rr{_CUT}": "RR@{k}",
    rf"ndcg(?:_cut)?{_CUT}": "nDCG@{k}",
    r"ndcg_(?:cut|score)": "nDCG@10",
    rf"(?:map|ap)(?:_cut)?{_CUT}": "AP@{k}",
    r"map_cut": "AP@10",
    r"gm_?map": 'AP with scores.mean(how="geometric")',
    r"gm_?bpref": 'Bpref with scores.mean(how="geometric")',
    rf"(?:p|prec|precision){_CUT}|prec@(?P<at>\d+)": "P@{k}",
    rf"(?:r|rec|recall){_CUT}|rec@(?P<at>\d+)": "R@{k}",
    rf"(?:r|recall)_?cap{_AT}": "RelativeP@{k}",
    r"(?:r|recall)_?cap": "RelativeP@10",
    rf"hole{_AT}": "Unjudged@{k}",
    r"iprec_at_recall(?:_|\.)(?P<k>[\d.]+)": "IPrec@{k}",
    r"iprec_at_recall": "IPrec@0.5",
    r"11-?pt_?avg": "ElevenPointAP",
    rf"relative_p{_CUT}": "RelativeP@{k}",
    r"set_relative_p": "SetRelP",
    rf"unj{_CUT}": "Unjudged@{k}",
    r"set_recall": "SetR",
    r"num_rel_ret": "NumRelRet",
    r"r[-_]?precision": "Rprec",
    r"hit_?rate|hit": "Success@10",
    r"hits": "NumRet(rel=1)",
    r"ndcg_burges@(?P<k>\d+)": "nDCG(dcg='exp-log2')@{k}",
    r"dcg_burges@(?P<k>\d+)": "RankDCG(dcg='exp-log2')@{k}",
    r"rbp\.(?P<k>\d+)": "RBP(rel=1,p=0.{k})",
    r"mp@(?P<k>\d+)": "GradedP@{k}, or P@{k} if all results are judged",
    r"cg\(d\)@(?P<k>\d+)": "GradedCG@{k}",
    r"dcg\(d\)@(?P<k>\d+)": "GradedDCG@{k}",
    r"ndcg\(d\)@(?P<k>\d+)": "GradednDCG@{k}",
    r"idcg@(?P<k>\d+)": "RankIDCG@{k}",
    r"idcg": "RankIDCG",
    r"(?:num_?)?(?:ur|newr?|uniq|unique)@(?P<k>\d+)": "NumUnique@{k}",
    r"(?:num_?)?(?:gr|good)@(?P<k>\d+)": "NumGood@{k}",
    r"(?:num_?)?(?:dupr?|dups|duplicates|repeats)@(?P<k>\d+)": "NumDup@{k}",
    r"redundancy(?P<k>@\d+)?": "SRR{k}",
    r"efficiency(?P<k>@\d+)?": "SRE{k}",
    r"(?:g|gain)@(?P<k>\d+)": "CG@{k} (iteration {k} alone has the gain G of the ledger)",
    r"r\^(?P<k>\d+)": "NumResults@{k} (iteration {k} alone has the results R of the ledger)",
    rf"(?:num_?)?ur{_OF_ONE}": "NumUnique (one iteration has UR in the ledger)",
    rf"(?:num_?)?gr{_OF_ONE}": "NumGood (one iteration has GR in the ledger)",
    rf"(?:num_?)?(?:dupr?|dups){_OF_ONE}": "NumDup (one iteration has Dup in the ledger)",
    rf"(?:g|gain){_OF_ONE}": "CG (one iteration has G in the ledger)",
    r"nsdcg(?P<k>@\d+)?": "nSessionDCG{k}",
    r"n": "NumIter",
}

#: Names in other tools (in any case) -> why no measure here computes them, and what to do.
_NOWHERE = {
    r"p[-_]?mrr(?:@\d+)?": "it compares the rankings of two instructions (FollowIR). Compare these two runs on RR",
    r"utility|bing|r?ndcg(?:_rel)?|relstring|runid|yaap|prefs_\w+|num_nonrel_judged_ret|rprec_mult\S*|(?:map|p)_avgjg\S*": (
        "no measure here is equal to it. Compute it with trec_eval"
    ),
    r"q(?:-?measure)?(?:@\d+)?": "no measure here is equal to it. Compute it with NTCIREVAL",
    r"context_(?:precision|recall|relevancy?)": "it grades the texts of an answer. For ids with labels, write P@5 or R@5",
}


def refuse_name_elsewhere(text: str) -> None:
    """Raise `MeasureError` if `text` is a name in another tool or in the guideline. The error has the name here, if there is one.

    A name in `READ_AS` with a cutoff, such as `HitRate@5`, is not refused.
    """
    for pattern, hint in _ELSEWHERE.items():
        if match := re.fullmatch(pattern, text, flags=re.IGNORECASE):
            cutoffs = [number for number in match.groupdict().values() if number]
            name = hint.format(k=next(iter(cutoffs), ""))
            raise MeasureError(f"{text} is not a measure here; write {name}")
    for pattern, reason in _NOWHERE.items():
        if re.fullmatch(pattern, text, flags=re.IGNORECASE):
            raise MeasureError(f"{text} is not a measure here: {reason}")


#: Names that are less like a measure's name than this get no suggestion.
_LEAST_LIKENESS = 0.65


def suggest_name(name: str, registry: Mapping[str, ir_measures.Measure]) -> str:
    """Return the remedy for a wrong name: the same name in another spelling, the title of a measure, or names like it."""
    names: dict[str, str] = {}
    titles: dict[str, str] = {}
    for spelling, measure in registry.items():
        own_name = spelling if measure.params else str(measure.NAME)
        title = getattr(measure, "PRETTY_NAME", None) or spelling
        names[spelling.lower()] = own_name
        titles.setdefault(_simplify_title(title), own_name)
    for alias, own_name in READ_AS.items():
        names[alias] = alias if "(" in own_name else own_name

    with_cutoff = re.fullmatch(r"(?P<name>.*[^\W\d_])[\W_]*(?P<cutoff>[0-9]+)", name, re.DOTALL)
    if with_cutoff and with_cutoff["name"].lower() in names:
        return f"did you mean {names[with_cutoff['name'].lower()]}@{with_cutoff['cutoff']}?"

    by_letters = {_keep_letters(spelling): own_name for spelling, own_name in names.items()}
    equal = by_letters.get(_keep_letters(name)) or titles.get(_simplify_title(name))
    if equal:
        return f"did you mean {equal}?"

    spellings = [spelling for spelling in names if len(spelling) > 1]
    near = difflib.get_close_matches(name.lower(), spellings, n=2, cutoff=_LEAST_LIKENESS)
    if near:
        suggested = dict.fromkeys(names[spelling] for spelling in near)
        return f"did you mean {' or '.join(suggested)}?"
    return "the command goodgain measures lists its measures, and ir-measur.es the classic ones"


def _keep_letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _simplify_title(title: str) -> str:
    """Return the letters of a measure's title, without "mean" at its start and "at k" at its end.

    >>> _simplify_title("(Mean) Average Precision"), _simplify_title("Precision at k"), _simplify_title("average_precision")
    ('averageprecision', 'precision', 'averageprecision')
    """
    letters = _keep_letters(re.sub(r" at k$|@k$", "", title))
    return letters.removeprefix("mean").replace("ise", "ize")
