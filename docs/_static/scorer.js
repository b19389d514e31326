/* Search results: pages that lead through a task stand before the reference, which has more words. */
const GUIDES = /^(start|howto|gallery)\//;

var Scorer = {
  score: (result) => result[4] + (GUIDES.test(result[0]) ? 10 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
