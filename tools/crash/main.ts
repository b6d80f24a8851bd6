import { commandLine, flag, number, progress as log, text } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { agentCrash, agentSummary, crash, crashSummary, scheduleCrash, scheduleSummary } from './run.ts'

const { values } = commandLine(
  {
    usage: 'npm run crash -- [options]',
    about: 'Kills the real server (kill -9) at random moments under mixed load and checks that it kept every promise.',
  },
  {
    rounds: number('N', 'kills over HTTP', 50),
    'core-rounds': number('N', 'kills with leased receive, on the broker in process', 50),
    'agent-rounds': number('N', 'disasters around durable agents, on each engine', 0),
    'schedule-rounds': number('N', 'kills around the due times of schedules, on each engine', 0),
    engine: text('NAME', 'the engine of the agent and schedule rounds: embedded or nats', 'both'),
    seed: number('N', 'repeats the choices of an earlier run'),
    'max-life': number('MS', 'the longest time under load between kills', 1500),
    'no-sync-check': flag('do not compare fsync calls with commits (the comparison needs strace)'),
  },
)
exitOnSignals()
const {
  engine,
  rounds,
  'agent-rounds': agentRounds,
  'core-rounds': coreRounds,
  'schedule-rounds': scheduleRounds,
  seed = Date.now() % 2 ** 31,
  'max-life': maxLifeMs,
} = values
log(`seed ${seed}`)
const engines = (['embedded', 'nats'] as const).filter((name) => engine === 'both' || engine === name)
if (scheduleRounds > 0) {
  const report = await scheduleCrash({ seed, rounds: scheduleRounds, log, engines })
  process.stdout.write(scheduleSummary(seed, report))
  process.exit(report.violations.total === 0 ? 0 : 1)
}
if (agentRounds > 0) {
  const report = await agentCrash({ seed, rounds: agentRounds, maxLifeMs, log, engines })
  process.stdout.write(agentSummary(seed, report))
  process.exit(report.violations.total === 0 ? 0 : 1)
}
const report = await crash({ seed, rounds, coreRounds, maxLifeMs, syncCheck: !values['no-sync-check'], log })
process.stdout.write(crashSummary(seed, report))
process.exitCode = report.violations.total === 0 ? 0 : 1
