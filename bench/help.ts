export const HELP = `Compares Baton with what else one would use: on one machine, in one run, with the same payload.

  npm run bench [-- options]

What is measured
  --only NAMES          workloads, by comma: submit, drain, latency, keyed, next, hot-key, memory, backlog,
                        or one of theirs, such as drain-16 or latency-loaded
  --subjects NAMES      by comma: sqlite, baton-nats, bullmq, pg-boss, graphile, plainjob, raw, raw-postgres, jetstream, …;
                        a name includes its variants; a Baton of the same durability is always among them
  --quick               smaller, one round, no variants: under 3 minutes on a quiet machine instead of most of an hour
  --rounds N            how often each is measured (3; with --quick 1). The backlog repeats inside one round;
                        for more rounds of it, run it again and give all files to --report
  --seed N              decides in which order the subjects come in each round (drawn, and told)

How much
  --items N             worked off per measurement of drain (60,000) and keyed (20,000), at the most
  --concurrency LIST    of drain (1,16,64)
  --keys N              of the keyed workloads (1,000)
  --rate N              items a second for latency under load (400)
  --levels LIST         how many wait, for backlog (1000,10000,100000,1000000)
  --load-seconds N      per subject for loading those (120); a level that is not reached is left out, and said
  --hot N               items that wait on the hot key (100,000)
  --waiting N           items that wait while memory is measured (100,000)

What becomes of it
  --json FILE           where the results are kept (bench/results/DATE.json); written after every step
  --markdown FILE       a page, such as docs/benchmarks.md, with its charts in a folder of its name beside it
  --report FILE…        measures nothing: makes table, page and charts of the results of one or several runs;
                        ratios are taken within a run only, so give each run its Baton
  --compare FILE FILE   measures nothing: says which ratios of the second run lie outside the spread of the first

Examples
  npm run bench -- --quick
  npm run bench -- --only keyed,next --subjects sqlite,graphile --rounds 5
  npm run bench -- --only backlog --subjects sqlite,baton-nats --levels 1000,1000000 --load-seconds 180
  npm run bench -- --markdown docs/benchmarks.md
  npm run bench -- --report bench/results/*.json --markdown docs/benchmarks.md
  npm run bench -- --compare bench/results/here.json bench/results/there.json

How to read it
  A ratio says how many times better Baton is, below 1 worse. It is taken round by round, of measurements made within
  moments of each other. What submit, drain, keyed and idle starts do in their first two seconds, or with the first
  third of the items, is not counted: a process that has just begun still compiles its code. Shown are the median and, in brackets, the lowest and the highest round. ≈ marks a tie. The
  report says how far rounds lay apart: that is what another run on such a machine may differ by. Before every
  measurement a loop, an fsync and the load of the machine are looked at; if it was not quiet, the report says so.
`;
