import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { startSignalbox } from '../harness/signalbox-server.ts'
import { startFixtureHost } from './fixture-host.ts'
import type { Scenario, Subject } from './scenarios.ts'
import type { Check } from './suite.ts'
import { runScenario } from './suite.ts'

/** The outcome of one scenario. */
export interface ScenarioReport {
  readonly scenario: Scenario
  readonly passed: number
  /** Checks that failed as known, by id. */
  readonly known: readonly string[]
  /** Texts of the warnings: recommendations of the specification that the server does not follow. */
  readonly warnings: readonly string[]
  /** Failures that are not known, and known failures that passed. */
  readonly problems: readonly string[]
}

/** Runs scenarios one after another, against a started server and a started fixture host. */
export async function conform(
  scenarios: readonly Scenario[],
  log: (line: string) => void,
): Promise<readonly ScenarioReport[]> {
  await using folder = await TemporaryFolder.create('conformance-server')
  await using server = await startSignalbox({ storePath: folder.path, instrumented: false })
  await using fixtures = await startFixtureHost()
  const urls: Readonly<Record<Subject, string>> = {
    connector: `${server.http}/mcp`,
    'connector + fixtures': fixtures.url,
  }
  const reports: ScenarioReport[] = []
  for (const scenario of scenarios) {
    const { suite, name, subject, version } = scenario
    const report = reportOf(scenario, await runScenario(suite, name, urls[subject], version))
    log(`${report.problems.length === 0 ? 'ok    ' : 'FAILED'} ${suite} ${version} ${name} (${subject})`)
    reports.push(report)
  }
  return reports
}

/** Compares the checks of a scenario with its known failures. */
export function reportOf(scenario: Scenario, checks: readonly Check[]): ScenarioReport {
  const withStatus = (status: Check['status']): readonly Check[] => checks.filter((check) => check.status === status)
  const failed = withStatus('FAILURE')
  const failedIds = new Set(failed.map(({ id }) => id))
  const isKnown = ({ id }: Check): boolean => Object.hasOwn(scenario.known, id)
  const stale = Object.keys(scenario.known).filter((id) => !failedIds.has(id))
  return {
    scenario,
    passed: withStatus('SUCCESS').length,
    known: failed.filter(isKnown).map(({ id }) => id),
    warnings: withStatus('WARNING').map(textOf),
    problems: [
      ...failed.filter((check) => !isKnown(check)).map(textOf),
      ...stale.map((id) => `${id}: it is listed as a known failure, but did not fail`),
      ...(checks.length === 0 ? ['the scenario has no checks'] : []),
    ],
  }
}

function textOf({ id, errorMessage }: Check): string {
  return errorMessage === undefined ? id : `${id}: ${errorMessage}`
}
